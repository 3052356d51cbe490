// The batch-reduce product for at most eight result rows, in vectors of eight: wider ones would be half
// empty, and processors that make a vector of sixteen in two halves take twice as long over it. Internal to
// the kernels.
#pragma once

#include "superstep/target/cpu/kernels/product/product_shape.h"

namespace superstep::kernels {

inline constexpr std::int64_t narrow_rows_limit = 8;

// As portable_product.h, f32, m at most narrow_rows_limit.
using NarrowProduct = void(const ProductShape& shape, const void* a, const void* b, float* c,
                           std::uint64_t count, const std::uint64_t* a_offsets,
                           const std::uint64_t* b_offsets);

// For the instruction set in force; null where it has no vectors of eight.
NarrowProduct* narrow_product();

}  // namespace superstep::kernels
