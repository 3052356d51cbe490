// Pooling over everything but batch and channels.
#include "superstep/op/arithmetic.h"
#include "superstep/op/derivative.h"
#include "superstep/op/pooling.h"
#include "superstep/op/pooling_loop.h"
#include "superstep/op/reduction.h"
#include "superstep/op/rules.h"
#include "superstep/op/view.h"

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

double input_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  return static_cast<double>(inputs[0].shape.element_count());
}

template <Reduce reduce>
Definition global_definition(std::string_view name) {
  return {.name = name,
          .since_opset = 1,
          .infer = infer_global,
          .flops = input_flops,
          .evaluate = evaluate_through<decompose_global<reduce>>,
          .vjp = vjp_through<decompose_global<reduce>>,
          .jvp = jvp_through<decompose_global<reduce>>,
          .decompose = decompose_global<reduce>};
}

}  // namespace

Var global_average_pool(Var x) { return x.builder().node1("GlobalAveragePool", {x}); }
Var global_max_pool(Var x) { return x.builder().node1("GlobalMaxPool", {x}); }

std::span<const Definition> global_pooling_operators() {
  static const Definition definitions[] = {global_definition<reduce_mean>("GlobalAveragePool"),
                                           global_definition<reduce_max>("GlobalMaxPool")};
  return definitions;
}

}  // namespace superstep::op
