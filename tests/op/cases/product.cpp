#include "superstep/op/product/cholesky.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

Case product(const char* name, Shape left, Shape right) {
  return {"MatMul", name, OF(matmul(x[0], x[1])), {random_tensor(left, 31), random_tensor(right, 32)}};
}

Case affine(const char* name, Shape left, Shape right, std::vector<Shape> added, GemmAttributes attributes) {
  Case result{"Gemm",
              name,
              OF(gemm(x[0], x[1], x.size() > 2 ? x[2] : Var(), attributes)),
              {random_tensor(left, 33), random_tensor(right, 34)}};
  for (const Shape& shape : added) result.inputs.push_back(random_tensor(shape, 35));
  return result;
}

Case convolution(const char* name, Shape x_shape, Shape w, bool bias, ConvAttributes attributes) {
  Case result{"Conv",
              name,
              OF(conv(x[0], x[1], x.size() > 2 ? x[2] : Var(), attributes)),
              {random_tensor(x_shape, 36), random_tensor(w, 37)}};
  if (bias) result.inputs.push_back(random_tensor({w[0]}, 38));
  return result;
}

Case transposed(const char* name, Shape x_shape, Shape w, bool bias, ConvTransposeAttributes attributes) {
  Case result{"ConvTranspose",
              name,
              OF(conv_transpose(x[0], x[1], x.size() > 2 ? x[2] : Var(), attributes)),
              {random_tensor(x_shape, 39), random_tensor(w, 40)}};
  if (bias) result.inputs.push_back(random_tensor({w[1] * attributes.group}, 41));
  return result;
}

ConvTransposeAttributes with(ConvAttributes base, std::vector<std::int64_t> output_padding,
                             std::vector<std::int64_t> output_shape = {}) {
  return {base, std::move(output_padding), std::move(output_shape)};
}

Case weight_gradient(const char* name, Shape x_shape, Shape dy, std::vector<std::int64_t> kernel,
                     Attributes attributes) {
  return {"superstep.ConvWeightGradient",
          name,
          OF(conv_weight_gradient(x[0], x[1], kernel, attributes)),
          {random_tensor(x_shape, 42), random_tensor(dy, 43)}};
}

using Extents = std::vector<std::int64_t>;

// Symmetric positive definite matrices; what stands above their diagonals is not read, and left as it comes.
Tensor positive(const Shape& shape, std::uint64_t seed) {
  Tensor a = random_tensor(shape, seed, 0.3);
  const std::int64_t n = shape[shape.rank() - 1];
  for (std::int64_t i = 0; i < a.element_count(); i += n * n)
    for (std::int64_t k = 0; k < n; ++k)
      a.set(i + k * n + k, 1.5 + 0.4 * static_cast<double>(n) + a.at(i + k * n + k));
  return a;
}

Case solve(const char* name, Shape factor, Shape right, bool transposed) {
  return {"superstep.TriangularSolve",
          name,
          OF(triangular_solve(x[0], x[1], transposed)),
          {positive(factor, 46), random_tensor(right, 47)}};
}

}  // namespace

std::vector<Case> product_cases() {
  return {
      {"superstep.Cholesky", "one matrix", OF(cholesky(x[0])), {positive({4, 4}, 44)}},
      {"superstep.Cholesky", "a stack", OF(cholesky(x[0])), {positive({2, 1, 3, 3}, 45)}},
      {"superstep.Cholesky", "one number", OF(cholesky(x[0])), {positive({1, 1}, 44)}},
      {"superstep.Cholesky",
       "log determinant",
       OF(log_determinant_of_factor(cholesky(x[0]))),
       {positive({2, 3, 3}, 48)}},
      solve("one matrix", {4, 4}, {4, 3}, false),
      solve("a stack", {2, 3, 3}, {2, 3, 1}, false),
      solve("transposed", {4, 4}, {4, 3}, true),
      solve("a transposed stack", {1, 2, 3, 3}, {1, 2, 3, 2}, true),
      product("matrices", {3, 4}, {4, 5}),
      product("stacks", {2, 3, 4}, {2, 4, 5}),
      product("stack and matrix", {2, 3, 4}, {4, 5}),
      product("matrix and stack", {3, 4}, {2, 4, 5}),
      product("broadcast stacks", {2, 1, 3, 4}, {3, 4, 2}),
      product("row vector", {4}, {4, 5}),
      product("column vector", {3, 4}, {4}),
      product("vectors", {4}, {4}),
      product("vector and stack", {4}, {2, 4, 3}),
      product("stack and vector", {2, 3, 4}, {4}),
      {"MatMul",
       "no inner elements",
       OF(matmul(x[0], x[1])),
       {Tensor(ElementType::f64, {2, 0}), Tensor(ElementType::f64, {0, 3})},
       Smooth::zero},
      {"MatMul",
       "integers",
       OF(matmul(x[0], x[1])),
       {i64({2, 2}, {1, 2, 3, 4}), i64({2, 2}, {-1, 0, 5, 2})},
       Smooth::no},
      affine("plain", {3, 4}, {4, 5}, {}, {}),
      affine("bias", {3, 4}, {4, 5}, {{5}}, {}),
      affine("both transposed", {4, 3}, {5, 4}, {{3, 1}},
             {.transpose_a = true, .transpose_b = true, .alpha = 0.5, .beta = -2}),
      affine("left transposed", {4, 3}, {4, 5}, {{}}, {.transpose_a = true, .alpha = 1.5}),
      affine("right transposed", {3, 4}, {5, 4}, {{3, 5}}, {.transpose_b = true, .beta = 0.25}),
      convolution("one dimension", {2, 3, 9}, {4, 3, 3}, true, {.strides = {2}, .pads = {1, 0}}),
      convolution("two dimensions", {2, 3, 6, 5}, {4, 3, 3, 2}, true, {}),
      convolution("groups, strides, dilations, pads", {2, 4, 7, 6}, {6, 2, 3, 2}, true,
                  {.strides = {2, 1}, .dilations = {1, 2}, .pads = {1, 2, 0, 1}, .group = 2}),
      convolution("depthwise", {1, 3, 5, 5}, {3, 1, 3, 3}, false, {.pads = {1, 1, 1, 1}, .group = 3}),
      convolution("pointwise", {2, 3, 4, 4}, {2, 3, 1, 1}, true, {.strides = {3, 3}}),
      convolution("SAME_UPPER", {1, 2, 5, 6}, {2, 2, 2, 4}, false,
                  {.strides = {2, 2}, .auto_pad = "SAME_UPPER"}),
      convolution("SAME_LOWER", {1, 2, 5, 6}, {2, 2, 2, 4}, false,
                  {.strides = {2, 2}, .auto_pad = "SAME_LOWER"}),
      convolution("VALID", {1, 2, 5, 6}, {2, 2, 2, 4}, false, {.auto_pad = "VALID"}),
      convolution("three dimensions", {1, 2, 4, 3, 5}, {2, 2, 2, 2, 3}, true,
                  {.strides = {1, 1, 2}, .pads = {1, 0, 1, 0, 1, 1}}),
      transposed("one dimension", {2, 3, 4}, {3, 2, 3}, true, with({.strides = {2}}, {})),
      transposed("two dimensions", {1, 2, 3, 4}, {2, 3, 3, 2}, true,
                 with({.strides = {2, 3}, .pads = {1, 0, 0, 1}}, {1, 2})),
      transposed("groups and dilations", {1, 4, 3, 3}, {4, 2, 2, 2}, true,
                 with({.dilations = {2, 1}, .group = 2}, {})),
      transposed("SAME_UPPER", {1, 1, 3, 3}, {1, 2, 3, 3}, false,
                 with({.strides = {2, 2}, .auto_pad = "SAME_UPPER"}, {})),
      transposed("output shape", {1, 1, 3, 3}, {1, 2, 3, 3}, false, with({.strides = {3, 2}}, {}, {10, 8})),
      transposed("padding of a stride and more", {1, 2, 3}, {2, 1, 2}, true, with({.strides = {2}}, {5})),
      transposed("three dimensions", {1, 2, 2, 3, 2}, {2, 1, 2, 2, 3}, false,
                 with({.strides = {1, 2, 2}}, {0, 1, 0})),
      weight_gradient("one dimension", {2, 3, 9}, {2, 4, 4}, {3}, {{"strides", Extents{2}}}),
      weight_gradient("two dimensions", {2, 3, 5, 6}, {2, 4, 3, 5}, {3, 2}, {}),
      weight_gradient("everything", {2, 4, 7, 6}, {2, 6, 3, 7}, {3, 2},
                      {{"strides", Extents{2, 1}},
                       {"dilations", Extents{1, 2}},
                       {"pads", Extents{1, 2, 0, 1}},
                       {"group", std::int64_t{2}}}),
      weight_gradient("three dimensions", {1, 2, 3, 4, 3}, {1, 1, 2, 3, 2}, {2, 2, 2}, {}),
  };
}

}  // namespace superstep::op::test
