// The batch-reduce product for few result rows: vectors run along the inner dimension. Internal to the
// kernels.
#pragma once

#include "superstep/target/cpu/kernels/product/product_shape.h"

namespace superstep::kernels {

// Result rows; more of them leave a product of few columns waiting for its sums, each of which is one chain.
inline constexpr std::int64_t dot_rows_limit = 8, dot_rows_of_few_columns = 32, few_dot_columns = 4;

inline constexpr std::int64_t most_dot_rows(std::int64_t columns) {
  return columns <= few_dot_columns ? dot_rows_of_few_columns : dot_rows_limit;
}

// As portable_product.h, with A stored [m][k], k contiguous, a_stride between its rows; B has k contiguous
// too. m at most most_dot_rows(n).
using DotProduct = void(const ProductShape& shape, const void* a, const void* b, float* c,
                        std::uint64_t count, const std::uint64_t* a_offsets, const std::uint64_t* b_offsets);

// For the instruction set in force and that m; f32 or bf16.
DotProduct* dot_product(std::int64_t m, ElementType type);

}  // namespace superstep::kernels
