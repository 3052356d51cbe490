#include "superstep/op/product/cholesky.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/batch_axis.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

std::int64_t order_of(const Shape& shape) { return shape[shape.rank() - 1]; }

void require_square(const InferContext& context, std::size_t input, std::string_view name) {
  require_floating(context, input, name);
  require_min_rank(context, input, name, 2);
  const Shape& shape = context.input(input).shape;
  require(order_of(shape) == shape[shape.rank() - 2],
          fmt::format("input {} is {}, expected square matrices", name, to_string(shape)));
}

Var transposed(Var x) { return swap_axes(x, -1, -2); }

// ---- factors ----------------------------------------------------------------------------------------------

std::vector<ValueType> infer_cholesky(const InferContext& context) {
  require_square(context, 0, "A");
  return {context.input(0)};
}

// Row by row (Cholesky and Banachiewicz); l is zero.
void factor(const double* a, double* l, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (std::int64_t k = 0; k < j; ++k) sum -= l[i * n + k] * l[j * n + k];
      if (i == j && !(sum > 0)) {
        std::fill(l, l + n * n, std::numeric_limits<double>::quiet_NaN());
        return;
      }
      l[i * n + j] = i == j ? std::sqrt(sum) : sum / l[j * n + j];
    }
}

void evaluate_cholesky(const EvaluateContext& context) {
  const std::int64_t n = order_of(context.input(0).shape());
  const std::vector<double> a = widen<double>(context.input(0));
  std::vector<double> l(a.size());
  for (std::size_t at = 0; at < a.size(); at += static_cast<std::size_t>(n * n)) factor(&a[at], &l[at], n);
  narrow(l, context.output(0));
}

// The lower triangle with half the diagonal: what both derivatives of a factor are made of (I. Murray,
// "Differentiation of the Cholesky decomposition", arXiv 1602.07527, equations 8 to 10).
Var lower_half(Var x) {
  const std::int64_t n = order_of(x.shape());
  Tensor weights(ElementType::f64, {n, n});
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) weights.set(i * n + j, i == j ? 0.5 : 1);
  return trilu(x, 0, false) * x.builder().constant(weights.converted(x.element()));
}

// L^-1 M L^-T.
Var between_inverses(Var l, Var m) {
  return transposed(triangular_solve(l, transposed(triangular_solve(l, m))));
}

// Elements above the diagonal are not read: what they would have is added to those below.
std::vector<Var> vjp_cholesky(const DerivativeContext& context, std::span<const Var> cotangents,
                              const std::vector<bool>&) {
  const Var l = context.outputs[0];
  const Var p = lower_half(matmul(transposed(l), trilu(cotangents[0], 0, false)));
  const Var symmetric = p + transposed(p);
  // L^-T (P + P^T) L^-1.
  const Var left = triangular_solve(l, symmetric, true);
  return {lower_half(transposed(triangular_solve(l, transposed(left), true)))};
}

std::vector<Var> jvp_cholesky(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var l = context.outputs[0];
  const Var half = lower_half(tangents[0]);
  return {matmul(l, lower_half(between_inverses(l, half + transposed(half))))};
}

double cholesky_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  const Shape& shape = inputs[0].shape;
  return static_cast<double>(shape.element_count()) * static_cast<double>(order_of(shape)) / 3;
}

// Rows [from, to) and columns [left, right) of the last two axes.
Var block(Var x, std::int64_t from, std::int64_t to, std::int64_t left, std::int64_t right) {
  return slice(x, {from, left}, {to, right}, {-2, -1});
}

Var zeros(Var like, std::int64_t rows, std::int64_t columns) {
  Extents extents = like.shape().extents();
  extents[extents.size() - 2] = rows, extents.back() = columns;
  return constant_of_shape(like.builder(), like.element(), Shape(extents));
}

// Column by column: what is left of a column below the diagonal, divided by the root of the element on it.
std::vector<Var> decompose_cholesky(const DerivativeContext& context) {
  const Var a = context.inputs[0];
  const std::int64_t n = order_of(a.shape());
  if (n == 0) return {a};
  std::vector<Var> columns;
  for (std::int64_t j = 0; j < n; ++j) {
    Var column = block(a, j, n, j, j + 1);
    if (j > 0) {
      const Var before = block(concat(columns, -1), j, n, 0, j);
      column = column - matmul(before, transposed(block(before, 0, 1, 0, j)));
    }
    const Var below = column / sqrt(block(column, 0, 1, 0, 1));
    columns.push_back(j > 0 ? concat(std::vector<Var>{zeros(a, j, 1), below}, -2) : below);
  }
  return {concat(columns, -1)};
}

// ---- triangular systems -----------------------------------------------------------------------------------

bool is_transposed(const Attributes& attributes) { return attributes.integer("transposed", 0) != 0; }

std::vector<ValueType> infer_triangular_solve(const InferContext& context) {
  require_square(context, 0, "L");
  require_same_element(context, 1, "B", 0, "L");
  const Shape &l = context.input(0).shape, &b = context.input(1).shape;
  Extents expected = l.extents();
  if (b.rank() == l.rank()) expected.back() = b[b.rank() - 1];
  require(b.extents() == expected,
          fmt::format("input B is {}, expected [..., {}, columns] with the leading axes of L {}",
                      to_string(b), order_of(l), to_string(l)));
  return {context.input(1)};
}

// Forwards, or backwards with the transpose; x holds B.
void solve(const double* l, double* x, std::int64_t n, std::int64_t columns, bool transpose) {
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = transpose ? n - 1 - step : step;
    for (std::int64_t c = 0; c < columns; ++c) {
      double sum = x[i * columns + c];
      for (std::int64_t k = transpose ? i + 1 : 0; k < (transpose ? n : i); ++k)
        sum -= (transpose ? l[k * n + i] : l[i * n + k]) * x[k * columns + c];
      x[i * columns + c] = sum / l[i * n + i];
    }
  }
}

void evaluate_triangular_solve(const EvaluateContext& context) {
  const Shape& shape = context.input(1).shape();
  const std::int64_t n = shape[shape.rank() - 2], columns = order_of(shape);
  const std::vector<double> l = widen<double>(context.input(0));
  std::vector<double> x = widen<double>(context.input(1));
  for (std::size_t at = 0, l_at = 0; at < x.size(); at += static_cast<std::size_t>(n * columns)) {
    solve(&l[l_at], &x[at], n, columns, is_transposed(context.attributes));
    l_at += static_cast<std::size_t>(n * n);
  }
  narrow(x, context.output(0));
}

// With X = L^-1 B: B' = L^-T X', L' = -lower(B' X^T); with X = L^-T B the roles of the two change.
std::vector<Var> vjp_triangular_solve(const DerivativeContext& context, std::span<const Var> cotangents,
                                      const std::vector<bool>& wanted) {
  const bool transpose = is_transposed(context.attributes);
  const Var x = context.outputs[0];
  const Var by_b = triangular_solve(context.inputs[0], cotangents[0], !transpose);
  std::vector<Var> result(2);
  if (wanted[0])
    result[0] = -trilu(transpose ? matmul(x, transposed(by_b)) : matmul(by_b, transposed(x)), 0, false);
  if (wanted[1]) result[1] = by_b;
  return result;
}

std::vector<Var> jvp_triangular_solve(const DerivativeContext& context, std::span<const Var> tangents) {
  const bool transpose = is_transposed(context.attributes);
  Var change = tangents[1];
  if (tangents[0].valid()) {
    const Var lower = trilu(tangents[0], 0, false);
    change = sum_valid(change, -matmul(transpose ? transposed(lower) : lower, context.outputs[0]));
  }
  return {triangular_solve(context.inputs[0], change, transpose)};
}

double triangular_solve_flops(const Attributes&, std::span<const ValueType> inputs,
                              std::span<const ValueType>) {
  return static_cast<double>(inputs[1].shape.element_count()) *
         static_cast<double>(order_of(inputs[0].shape));
}

// Row by row, each with those that are known.
std::vector<Var> decompose_triangular_solve(const DerivativeContext& context) {
  const bool transpose = is_transposed(context.attributes);
  const Var l = context.inputs[0], b = context.inputs[1];
  const std::int64_t n = order_of(l.shape()), columns = order_of(b.shape());
  if (n == 0) return {b};
  std::vector<Var> rows;  // in the order of the result
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = transpose ? n - 1 - step : step;
    Var row = block(b, i, i + 1, 0, columns);
    if (step > 0) {
      const Var factors = transpose ? transposed(block(l, i + 1, n, i, i + 1)) : block(l, i, i + 1, 0, i);
      row = row - matmul(factors, concat(rows, -2));
    }
    rows.insert(transpose ? rows.begin() : rows.end(), row / block(l, i, i + 1, i, i + 1));
  }
  return {concat(rows, -2)};
}

// Matrices of a stack are apart, and so are the columns of B where L is the same for all samples.
BatchAxis samples_of_triangular_solve(const BatchSite& site) {
  const int rank = site.shape(0).rank();
  const bool of_l = site.is(0, BatchKind::per_sample), of_b = site.is(1, BatchKind::per_sample);
  const BatchAxis samples = site.inputs[of_l ? 0 : 1];
  if (!of_l && !of_b) return mixes("solves equations with a sum over the batch");
  if (of_l && of_b && !(site.inputs[0] == site.inputs[1])) return mixes("solves equations across the batch");
  if (!of_l && !site.is(0, BatchKind::constant)) return mixes("solves equations with a sum over the batch");
  if (of_l && !of_b && !site.is(1, BatchKind::constant))
    return mixes("solves equations for a sum over the batch");
  const bool apart = samples.axis < rank - 2 || (!of_l && samples.axis == rank - 1);
  return apart ? samples : mixes("solves equations across the batch");
}

constexpr Definition cholesky_definition{
    .name = "superstep.Cholesky",
    .since_opset = 0,
    .traits = {.elements = Elements::floating, .work = WorkKind::reduction, .batch = batch::triangle},
    .infer = infer_cholesky,
    .flops = cholesky_flops,
    .evaluate = evaluate_cholesky,
    .vjp = vjp_cholesky,
    .jvp = jvp_cholesky,
    .decompose = decompose_cholesky};

constexpr Definition triangular_solve_definition{.name = "superstep.TriangularSolve",
                                                 .since_opset = 0,
                                                 .min_inputs = 2,
                                                 .max_inputs = 2,
                                                 .traits = {.elements = Elements::floating,
                                                            .work = WorkKind::reduction,
                                                            .batch = samples_of_triangular_solve},
                                                 .infer = infer_triangular_solve,
                                                 .flops = triangular_solve_flops,
                                                 .evaluate = evaluate_triangular_solve,
                                                 .vjp = vjp_triangular_solve,
                                                 .jvp = jvp_triangular_solve,
                                                 .decompose = decompose_triangular_solve};

}  // namespace

Var cholesky(Var a) { return a.builder().node1("superstep.Cholesky", {a}); }

Var triangular_solve(Var l, Var b, bool transposed) {
  return l.builder().node1("superstep.TriangularSolve", {l, b}, {{"transposed", std::int64_t{transposed}}});
}

Var log_determinant_of_factor(Var l) {
  const std::int64_t n = order_of(l.shape());
  Tensor diagonal(ElementType::f64, {n, n});
  for (std::int64_t i = 0; i < n; ++i) diagonal.set(i * n + i, 1);
  const Var mask = l.builder().constant(diagonal.converted(l.element()));
  return reduce_sum(log(reduce_sum(l * mask, {-1})), {-1}) * 2.0;
}

std::span<const Definition> cholesky_operators() {
  static const Definition definitions[] = {cholesky_definition, triangular_solve_definition};
  return definitions;
}

}  // namespace superstep::op
