// The batch-reduce product for few result rows: vectors run along the inner dimension. Internal to the
// kernels.
#pragma once

#include "superstep/target/cpu/kernels/product/product_shape.h"

namespace superstep::kernels {

inline constexpr std::int64_t dot_rows_limit = 8;

// As portable_product.h, with A stored [m][k], k contiguous, a_stride between its rows; B has k contiguous
// too. m at most dot_rows_limit.
using DotProduct = void(const ProductShape& shape, const void* a, const void* b, float* c,
                        std::uint64_t count, const std::uint64_t* a_offsets, const std::uint64_t* b_offsets);

// For the instruction set in force and that m; f32 or bf16.
DotProduct* dot_product(std::int64_t m, ElementType type);

}  // namespace superstep::kernels
