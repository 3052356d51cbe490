#include "superstep/op/core/rules.h"

#include "superstep/op/core/checks.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {

Var sum_valid(Var a, Var b) {
  if (!a.valid()) return b;
  return b.valid() ? a + b : a;
}

Var constant_like(Var x, double value) { return x.builder().scalar(x.element(), value); }

Var sum_to(Var x, const Shape& shape) {
  if (!x.valid() || x.shape() == shape) return x;
  const int shift = x.shape().rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < x.shape().rank(); ++axis)
    if (axis < shift || (shape[axis - shift] == 1 && x.shape()[axis] != 1)) axes.push_back(axis);
  return reshape(axes.empty() ? x : reduce_sum(x, axes), shape);
}

Var expand_to(Var x, const Shape& shape) { return x.valid() ? expand(x, shape) : x; }

std::vector<Var> zero_vjp(const DerivativeContext& context, std::span<const Var>, const std::vector<bool>&) {
  return no_cotangents(context);
}

std::vector<Var> zero_jvp(const DerivativeContext& context, std::span<const Var>) {
  return std::vector<Var>(context.outputs.size());
}

Definition definition_without_slope(std::string_view name, int opset, int inputs, const Traits& traits,
                                    decltype(Definition::infer) infer,
                                    decltype(Definition::evaluate) evaluate) {
  return {.name = name,
          .since_opset = opset,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .traits = traits,
          .infer = infer,
          .evaluate = evaluate,
          .vjp = zero_vjp,
          .jvp = zero_jvp};
}

std::vector<Var> no_cotangents(const DerivativeContext& context) {
  return std::vector<Var>(context.inputs.size());
}

const Tensor* constant_data(Var x) {
  if (!x.valid()) return nullptr;
  const graph::Value& value = x.builder().graph().value(x.id());
  return value.kind == graph::ValueKind::constant ? &value.data : nullptr;
}

std::vector<std::int64_t> constant_integers(Var x) {
  if (const Tensor* data = constant_data(x)) return integers_of(*data);
  throw Error(ErrorCode::unsupported, "an input that must be known when the graph is compiled is computed");
}

Shape checked_shape(std::vector<std::int64_t> extents) {
  for (std::int64_t extent : extents) require(extent >= 0, "a shape has a negative extent");
  return Shape(std::move(extents));
}

}  // namespace superstep::op
