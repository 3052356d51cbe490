#include "superstep/op/product/matmul.h"

#include <fmt/format.h>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/product_loop.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

// A product with both operands as stacks of matrices: vectors have become matrices.
struct Product {
  Shape a, b;   // [..., m, k] and [..., k, n]
  Shape batch;  // the broadcast leading axes
  std::int64_t m, n, k;
  Shape result;  // as NumPy gives it
};

Shape leading(const Shape& shape) { return Shape(Extents(shape.begin(), shape.end() - 2)); }

Shape joined(const Shape& batch, std::initializer_list<std::int64_t> rest) {
  Extents extents = batch.extents();
  extents.insert(extents.end(), rest);
  return Shape(extents);
}

Product product_of(const Shape& a, const Shape& b) {
  require(a.rank() > 0 && b.rank() > 0,
          fmt::format("inputs A {} and B {} must have one axis or more", to_string(a), to_string(b)));
  Product p;
  p.a = a.rank() == 1 ? Shape{1, a[0]} : a;
  p.b = b.rank() == 1 ? Shape{b[0], 1} : b;
  p.m = p.a[p.a.rank() - 2];
  p.k = p.a[p.a.rank() - 1];
  p.n = p.b[p.b.rank() - 1];
  require(p.k == p.b[p.b.rank() - 2], fmt::format("input A {} has {} columns, input B {} has {} rows",
                                                  to_string(a), p.k, to_string(b), p.b[p.b.rank() - 2]));
  p.batch = checked_broadcast(leading(p.a), leading(p.b), "leading axes of A and B");
  Extents extents = p.batch.extents();
  if (a.rank() > 1) extents.push_back(p.m);
  if (b.rank() > 1) extents.push_back(p.n);
  p.result = Shape(extents);
  return p;
}

std::vector<ValueType> infer_matmul(const InferContext& context) {
  require_numeric(context, 0, "A");
  require_same_element(context, 1, "B", 0, "A");
  return {{context.input(0).element, product_of(context.input(0).shape, context.input(1).shape).result}};
}

void evaluate_matmul(const EvaluateContext& context) {
  const Product p = product_of(context.input(0).shape(), context.input(1).shape());
  dispatch_wide(context.input(0).type(), [&]<class Wide>() {
    // Unsigned arithmetic wraps around without undefined behaviour and gives the same bits.
    using W = std::conditional_t<std::is_same_v<Wide, double>, double, std::uint64_t>;
    const std::vector<W> a = widen<W>(context.input(0)), b = widen<W>(context.input(1));
    std::vector<W> y(static_cast<std::size_t>(context.output(0).element_count()));
    Extents starts_b;
    for_each_strided(p.batch, broadcast_strides(leading(p.b), p.batch), 0,
                     [&](std::int64_t, std::int64_t matrix) { starts_b.push_back(matrix * p.k * p.n); });
    for_each_strided(
        p.batch, broadcast_strides(leading(p.a), p.batch), 0, [&](std::int64_t i, std::int64_t matrix) {
          add_product(a.data() + matrix * p.m * p.k, b.data() + starts_b[static_cast<std::size_t>(i)],
                      y.data() + i * p.m * p.n, p.m, p.n, p.k, p.n);
        });
    narrow(y, context.output(0));
  });
}

// When b is one matrix, the leading axes of a are rows like any other: plain matrix products.
std::vector<Var> vjp_by_matrix(const DerivativeContext& context, const Product& p, Var t,
                               const std::vector<bool>& wanted) {
  const Var a = context.inputs[0], b = context.inputs[1];
  const std::int64_t rows = p.batch.element_count() * p.m;
  const Var flat_t = reshape(t, {rows, p.n});
  std::vector<Var> result(2);
  if (wanted[0]) result[0] = reshape(gemm(flat_t, reshape(b, p.b), {}, {.transpose_b = true}), a.shape());
  if (wanted[1])
    result[1] = reshape(gemm(reshape(a, {rows, p.k}), flat_t, {}, {.transpose_a = true}), b.shape());
  return result;
}

std::vector<Var> vjp_matmul(const DerivativeContext& context, std::span<const Var> cotangents,
                            const std::vector<bool>& wanted) {
  const Var a = context.inputs[0], b = context.inputs[1];
  const Product p = product_of(a.shape(), b.shape());
  if (p.b.rank() == 2) return vjp_by_matrix(context, p, cotangents[0], wanted);
  const Var t = reshape(cotangents[0], joined(p.batch, {p.m, p.n}));
  std::vector<Var> result(2);
  if (wanted[0]) result[0] = reshape(sum_to(matmul(t, swap_axes(reshape(b, p.b), -1, -2)), p.a), a.shape());
  if (wanted[1]) result[1] = reshape(sum_to(matmul(swap_axes(reshape(a, p.a), -1, -2), t), p.b), b.shape());
  return result;
}

std::vector<Var> jvp_matmul(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var by_a = tangents[0].valid() ? matmul(tangents[0], context.inputs[1]) : Var();
  const Var by_b = tangents[1].valid() ? matmul(context.inputs[0], tangents[1]) : Var();
  return {sum_valid(by_a, by_b)};
}

double matmul_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  const Product p = product_of(inputs[0].shape, inputs[1].shape);
  return 2.0 * static_cast<double>(p.batch.element_count()) * static_cast<double>(p.m) *
         static_cast<double>(p.n) * static_cast<double>(p.k);
}

GemmAttributes read(const Attributes& attributes) {
  return {attributes.integer("transA", 0) != 0, attributes.integer("transB", 0) != 0,
          attributes.number("alpha", 1), attributes.number("beta", 1)};
}

struct GemmSizes {
  std::int64_t m, n, k;
};

GemmSizes sizes_of(const GemmAttributes& attributes, const Shape& a, const Shape& b) {
  const std::int64_t inner_b = b[attributes.transpose_b ? 1 : 0];
  const GemmSizes sizes = {a[attributes.transpose_a ? 1 : 0], b[attributes.transpose_b ? 0 : 1],
                           a[attributes.transpose_a ? 0 : 1]};
  require(sizes.k == inner_b,
          fmt::format("inputs A {}{} and B {}{} have inner extents {} and {}, expected the same",
                      to_string(a), attributes.transpose_a ? " transposed" : "", to_string(b),
                      attributes.transpose_b ? " transposed" : "", sizes.k, inner_b));
  return sizes;
}

std::vector<ValueType> infer_gemm(const InferContext& context) {
  require_numeric(context, 0, "A");
  require_rank(context, 0, "A", 2);
  require_rank(context, 1, "B", 2);
  require_same_element(context, 1, "B", 0, "A");
  const auto [m, n, k] = sizes_of(read(context.attributes), context.input(0).shape, context.input(1).shape);
  const Shape shape{m, n};
  if (context.has(2)) {
    require_same_element(context, 2, "C", 0, "A");
    const Shape& c = context.input(2).shape;
    require(
        checked_broadcast(c, shape, "C and the product") == shape,
        fmt::format("input C is {}, expected a shape that broadcasts to {}", to_string(c), to_string(shape)));
  }
  return {{context.input(0).element, shape}};
}

template <class W>
std::vector<W> matrix(const Tensor& x, bool transposed) {
  std::vector<W> values = widen<W>(x);
  if (!transposed) return values;
  std::vector<W> result(values.size());
  for_each_strided({x.shape()[1], x.shape()[0]}, {1, x.shape()[1]}, 0,
                   [&](std::int64_t i, std::int64_t offset) {
                     result[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(offset)];
                   });
  return result;
}

void evaluate_gemm(const EvaluateContext& context) {
  const GemmAttributes attributes = read(context.attributes);
  const auto [m, n, k] = sizes_of(attributes, context.input(0).shape(), context.input(1).shape());
  Tensor& y = context.output(0);
  dispatch_wide(y.type(), [&]<class Wide>() {
    using W = std::conditional_t<std::is_same_v<Wide, double>, double, std::uint64_t>;
    const auto a = matrix<W>(context.input(0), attributes.transpose_a);
    const auto b = matrix<W>(context.input(1), attributes.transpose_b);
    std::vector<W> result(static_cast<std::size_t>(m * n));
    add_product(a.data(), b.data(), result.data(), m, n, k, n);
    const auto alpha = static_cast<W>(static_cast<Wide>(attributes.alpha));
    const auto beta = static_cast<W>(static_cast<Wide>(attributes.beta));
    for (W& value : result) value *= alpha;
    if (context.has(2) && attributes.beta != 0) {  // as BLAS: what is not added is not read, NaN or not
      const auto c = widen_to<W>(context.input(2), y.shape());
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += beta * c[i];
    }
    narrow(result, y);
  });
}

std::vector<Var> vjp_gemm(const DerivativeContext& context, std::span<const Var> cotangents,
                          const std::vector<bool>& wanted) {
  const auto [ta, tb, alpha, beta] = read(context.attributes);
  const Var a = context.inputs[0], b = context.inputs[1], t = cotangents[0];
  std::vector<Var> result = no_cotangents(context);
  if (wanted[0])
    result[0] = ta ? gemm(b, t, {}, {.transpose_a = tb, .transpose_b = true, .alpha = alpha})
                   : gemm(t, b, {}, {.transpose_b = !tb, .alpha = alpha});
  if (wanted[1])
    result[1] = tb ? gemm(t, a, {}, {.transpose_a = true, .transpose_b = ta, .alpha = alpha})
                   : gemm(a, t, {}, {.transpose_a = !ta, .alpha = alpha});
  if (context.has(2) && wanted[2]) result[2] = sum_to(beta == 1 ? t : t * beta, context.inputs[2].shape());
  return result;
}

std::vector<Var> jvp_gemm(const DerivativeContext& context, std::span<const Var> tangents) {
  const GemmAttributes attributes = read(context.attributes);
  const Var a = context.inputs[0], b = context.inputs[1];
  Var total = tangents[0].valid() ? gemm(tangents[0], b, {}, attributes) : Var();
  if (tangents[1].valid()) total = sum_valid(total, gemm(a, tangents[1], {}, attributes));
  if (tangents.size() > 2 && tangents[2].valid())
    total = sum_valid(total, attributes.beta == 1 ? tangents[2] : tangents[2] * attributes.beta);
  return {expand_to(total, context.outputs[0].shape())};
}

double gemm_flops(const Attributes& attributes, std::span<const ValueType> inputs,
                  std::span<const ValueType> outputs) {
  const auto [m, n, k] = sizes_of(read(attributes), inputs[0].shape, inputs[1].shape);
  const double product = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return product + (inputs.size() > 2 ? static_cast<double>(outputs[0].shape.element_count()) : 0.0);
}

}  // namespace

Var matmul(Var a, Var b) { return a.builder().node1("MatMul", {a, b}); }

Var gemm(Var a, Var b, Var c, const GemmAttributes& attributes) {
  return a.builder().node1("Gemm", {a, b, c},
                           {{"transA", std::int64_t{attributes.transpose_a}},
                            {"transB", std::int64_t{attributes.transpose_b}},
                            {"alpha", attributes.alpha},
                            {"beta", attributes.beta}});
}

std::span<const Definition> matmul_operators() {
  static const Definition definitions[] = {
      {.name = "MatMul",
       .since_opset = 13,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::numeric,
                  .work = WorkKind::product,
                  .batch = batch::matmul,
                  .product = true,
                  .product_kind = ProductKind::matrices},
       .infer = infer_matmul,
       .flops = matmul_flops,
       .evaluate = evaluate_matmul,
       .vjp = vjp_matmul,
       .jvp = jvp_matmul},
      {.name = "Gemm",
       .since_opset = 13,
       .min_inputs = 2,
       .max_inputs = 3,
       .traits = {.elements = Elements::numeric,
                  .work = WorkKind::product,
                  .batch = batch::gemm,
                  .attributes = "alpha beta broadcast transA transB",
                  .product = true,
                  .product_kind = ProductKind::scaled_matrices},
       .infer = infer_gemm,
       .flops = gemm_flops,
       .evaluate = evaluate_gemm,
       .vjp = vjp_gemm,
       .jvp = jvp_gemm},
  };
  return definitions;
}

}  // namespace superstep::op
