// Pooling over everything but batch and channels.
#include "superstep/op/batch/rules.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/window/pooling.h"
#include "superstep/op/window/pooling_loop.h"

namespace superstep::op {
namespace {

std::vector<ValueType> infer_global(const InferContext& context) {
  require_floating(context, 0, "X");
  require_min_rank(context, 0, "X", 2);
  const ValueType& x = context.input(0);
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.shape.rank()), 1);
  extents[0] = x.shape[0];
  extents[1] = x.shape[1];
  return {{x.element, Shape(extents)}};
}

Axes spatial_axes(Var x) {
  Axes axes;
  for (int axis = 2; axis < x.shape().rank(); ++axis) axes.push_back(axis);
  return axes;
}

using Reduce = Var (*)(Var, const Axes&, bool);

template <Reduce reduce>
std::vector<Var> decompose_global(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const Axes axes = spatial_axes(x);
  return {axes.empty() ? reshape(x + 0.0, x.shape()) : reduce(x, axes, true)};
}

std::int64_t power_of(const Attributes& attributes) {
  const std::int64_t p = attributes.integer("p", 2);
  require(p >= 1 && p < 1 << 10, "attribute 'p' is " + std::to_string(p) + ", expected 1 or more");
  return p;
}

std::vector<ValueType> infer_lp(const InferContext& context) {
  power_of(context.attributes);
  return infer_global(context);
}

std::vector<Var> decompose_lp(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const Axes axes = spatial_axes(x);
  const std::int64_t p = power_of(context.attributes);
  if (axes.empty()) return {abs(x)};
  if (p == 1) return {reduce_l1(x, axes, true)};
  if (p == 2) return {reduce_l2(x, axes, true)};
  const auto power = static_cast<double>(p);
  return {pow(reduce_sum(pow(abs(x), power), axes, true), 1 / power)};
}

}  // namespace

Var global_average_pool(Var x) { return x.builder().node1("GlobalAveragePool", {x}); }
Var global_max_pool(Var x) { return x.builder().node1("GlobalMaxPool", {x}); }
Var global_lp_pool(Var x, std::int64_t p) { return x.builder().node1("GlobalLpPool", {x}, {{"p", p}}); }

std::span<const Definition> global_pooling_operators() {
  static const Definition definitions[] = {
      composite<decompose_global<reduce_mean>>({"GlobalAveragePool", 1}, infer_global,
                                               {.elements = Elements::floating,
                                                .work = WorkKind::reduction,
                                                .batch = batch::windowed,
                                                .folding = Folding::mean}),
      composite<decompose_global<reduce_max>>({"GlobalMaxPool", 1}, infer_global,
                                              {.elements = Elements::floating,
                                               .work = WorkKind::reduction,
                                               .batch = batch::windowed,
                                               .folding = Folding::largest}),
      composite<decompose_lp>({"GlobalLpPool", 2}, infer_lp,
                              {.elements = Elements::floating,
                               .work = WorkKind::elementwise,
                               .batch = batch::windowed,
                               .attributes = "p"})};
  return definitions;
}

}  // namespace superstep::op
