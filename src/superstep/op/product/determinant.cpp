#include "superstep/op/product/determinant.h"

#include <cmath>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

std::vector<ValueType> infer_det(const InferContext& context) {
  require_floating(context, 0, "X");
  require_min_rank(context, 0, "X", 2);
  const Shape& shape = context.input(0).shape;
  require(shape[shape.rank() - 1] == shape[shape.rank() - 2],
          "input X is " + to_string(shape) + ", expected square matrices");
  return {{context.input(0).element, Shape(Extents(shape.begin(), shape.end() - 2))}};
}

// Gaussian elimination with the largest pivot of each column; destroys the matrix.
double eliminate(double* a, std::int64_t n) {
  double determinant = 1;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t row = k + 1; row < n; ++row)
      if (std::abs(a[row * n + k]) > std::abs(a[pivot * n + k])) pivot = row;
    if (a[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      determinant = -determinant;
    }
    determinant *= a[k * n + k];
    for (std::int64_t row = k + 1; row < n; ++row) {
      const double factor = a[row * n + k] / a[k * n + k];
      for (std::int64_t column = k; column < n; ++column) a[row * n + column] -= factor * a[k * n + column];
    }
  }
  return determinant;
}

void evaluate_det(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const std::int64_t n = shape[shape.rank() - 1];
  std::vector<double> x = widen<double>(context.input(0));
  std::vector<double> y(static_cast<std::size_t>(context.output(0).element_count()));
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = eliminate(x.data() + static_cast<std::int64_t>(i) * n * n, n);
  narrow(y, context.output(0));
}

// d det / d x_ij is the cofactor: (-1)^(i+j) times the determinant without row i and column j. Exact for
// singular matrices too, and again differentiable; meant for the small matrices that models have.
Var cofactors(Var x) {
  const int rank = x.shape().rank();
  const std::int64_t n = x.shape()[rank - 1];
  if (n == 0) return x;
  Extents positions;
  Tensor signs(ElementType::f64, {n, n});
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      signs.set(i * n + j, (i + j) % 2 ? -1 : 1);
      for (std::int64_t k = 0; k < n * n; ++k)
        if (k / n != i && k % n != j) positions.push_back(k);
    }
  Extents flat(x.shape().begin(), x.shape().end() - 2);
  flat.push_back(n * n);
  const Var indices = reshape(x.builder().integers(positions), {n, n, n - 1, n - 1});
  const Var minors = determinant(gather(reshape(x, Shape(flat)), indices, -1));
  return minors * x.builder().constant(signs.converted(x.element()));
}

std::vector<Var> vjp_det(const DerivativeContext& context, std::span<const Var> cotangents,
                         const std::vector<bool>&) {
  return {unsqueeze(cotangents[0], {-1, -2}) * cofactors(context.inputs[0])};
}

std::vector<Var> jvp_det(const DerivativeContext& context, std::span<const Var> tangents) {
  return {reduce_sum(tangents[0] * cofactors(context.inputs[0]), {-1, -2})};
}

double det_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  const Shape& shape = inputs[0].shape;
  return 2.0 / 3 * static_cast<double>(shape.element_count()) * static_cast<double>(shape[shape.rank() - 1]);
}

}  // namespace

Var determinant(Var x) { return x.builder().node1("Det", {x}); }

std::span<const Definition> determinant_operators() {
  static const Definition definitions[] = {
      {.name = "Det",
       .since_opset = 11,
       .traits = {.elements = Elements::floating, .work = WorkKind::reduction},
       .infer = infer_det,
       .flops = det_flops,
       .evaluate = evaluate_det,
       .vjp = vjp_det,
       .jvp = jvp_det}};
  return definitions;
}

}  // namespace superstep::op
