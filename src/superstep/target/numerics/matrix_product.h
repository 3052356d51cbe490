// Products of matrices, and sums over axes, as gathered products.
#pragma once

#include <memory>
#include <vector>

#include "superstep/base/shape.h"
#include "superstep/target/numerics/product.h"

namespace superstep::target::numerics {

// Stacks of matrices [..., m, k] and [..., k, n] whose leading axes are broadcast.
std::unique_ptr<Product> stacked_product(const Shape& a, const Shape& b);
// [m, k] and [k, n], either transposed in memory.
struct MatrixLayout {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
};
std::unique_ptr<Product> matrix_product(const MatrixLayout& layout);
// Ones times the elements along `axes`, in row-major order.
std::unique_ptr<Product> sum_product(const Shape& shape, const std::vector<int>& axes);

}  // namespace superstep::target::numerics
