// Checks of numbers that came from a file.
#pragma once

#include <cstdint>
#include <string_view>

#include "superstep/base/tensor.h"

namespace superstep::data {

// Throws Error (bad_file) that names `where` (a file and a data set) , the index of the first NaN or
// infinity and how many there are; `first_row` is added to the index of the outermost axis, for tensors read
// block by block.
void require_finite(const Tensor& tensor, std::string_view where, std::int64_t first_row = 0);

// The same for values outside [low, high].
void require_in_range(const Tensor& tensor, double low, double high, std::string_view where,
                      std::int64_t first_row = 0);

// The same for what the integer type `type` cannot hold as it is: what is out of its range, has a fraction or
// is no finite number.
void require_integers_of(ElementType type, const Tensor& tensor, std::string_view where,
                         std::int64_t first_row = 0);
// Whether `type` is an integer type that does not hold every number of type `from`.
bool is_narrower_integer(ElementType type, ElementType from);

// What is packed (zip, gzip, pages of TIFF) and says that it unpacks to `unpacked` bytes: refused, before it
// is unpacked, where that is both a great deal and far more than data pack to. Throws Error (bad_file).
void require_plausible_ratio(double unpacked, double packed, std::string_view where);

}  // namespace superstep::data
