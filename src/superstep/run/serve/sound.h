// Weights and answers that mean something: finite, and not all zero.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "superstep/base/tensor.h"

namespace superstep::run {

// Elements that are NaN or infinite; none of whole numbers.
std::int64_t count_not_finite(const Tensor& tensor);
// Rows along the first axis that have such an element, of `count` from `first` on; below 0: of all.
std::int64_t rows_not_finite(const Tensor& tensor, std::int64_t first = 0, std::int64_t count = -1);

// The same of rows with an element below `low` or above `high`; NaN is neither.
std::int64_t rows_outside(const Tensor& tensor, double low, double high, std::int64_t first = 0,
                          std::int64_t count = -1);
// Of the elements that are finite; `low` above `high` where none is.
struct FiniteRange {
  double low = 0, high = 0;
};
FiniteRange finite_range(const Tensor& tensor);

// Throws Error (bad_file) naming the first state that is not finite, or saying that all weights are zero: a
// model of such weights answers, and its answers mean nothing.
void require_sound(const std::map<std::string, Tensor>& states, const std::string& where);

}  // namespace superstep::run
