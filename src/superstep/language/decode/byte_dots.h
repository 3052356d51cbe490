// Products of weights in blocks with the bytes of one token, by instructions that add four products of bytes
// at once (AVX-512 VNNI): so that what a core computes keeps up with what memory brings it.
#pragma once

#include "superstep/language/decode/products.h"

namespace superstep::language {

// Whether the processor has them, and they are used for such weights: q8_0 and q4_k.
bool suits_byte_dots(Packing packing);

// y[r] = row r of the matrix times x, for r in [first, last).
void multiply_rows_by_byte_dots(const Matrix& matrix, const Activations& x, std::int64_t first,
                                std::int64_t last, float* y);

}  // namespace superstep::language
