// Clip and PRelu: activations whose parameters are inputs.
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/elementwise_traits.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"

namespace superstep::op {
namespace {

std::vector<ValueType> infer_clip(const InferContext& context) {
  require_numeric(context, 0, "input");
  for (std::size_t i : {1u, 2u})
    if (context.has(i)) {
      const char* name = i == 1 ? "min" : "max";
      require_scalar(context, i, name);
      require_same_element(context, i, name, 0, "input");
    }
  return {context.input(0)};
}

void evaluate_clip(const EvaluateContext& context) {
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    std::vector<W> values = widen<W>(context.input(0));
    if (context.has(1)) {
      const W low = widen<W>(context.input(1))[0];
      for (W& value : values) value = value < low || low != low ? low : value;  // a limit that is NaN counts
    }
    if (context.has(2)) {
      const W high = widen<W>(context.input(2))[0];
      for (W& value : values) value = value > high || high != high ? high : value;
    }
    narrow(values, context.output(0));
  });
}

Var zero_like(Var x) { return constant_like(x, 0); }
Var flat(Var scalar) { return sum_to(scalar, {}); }  // a limit of shape [1] as a scalar

Var below(const DerivativeContext& context) { return less(context.inputs[0], flat(context.inputs[1])); }

// Above the upper limit after the lower one was applied: where max < min, everything is max.
Var above(const DerivativeContext& context) {
  const Var x = context.has(1) ? max(context.inputs[0], flat(context.inputs[1])) : context.inputs[0];
  return greater(x, flat(context.inputs[2]));
}

std::vector<Var> vjp_clip(const DerivativeContext& context, std::span<const Var> cotangents,
                          const std::vector<bool>& wanted) {
  std::vector<Var> result = no_cotangents(context);
  Var t = cotangents[0];
  if (context.has(2)) {
    const Var limited = above(context);
    if (wanted[2]) result[2] = sum_to(where(limited, t, zero_like(t)), context.inputs[2].shape());
    t = where(limited, zero_like(t), t);
  }
  if (context.has(1)) {
    const Var limited = below(context);
    if (wanted[1]) result[1] = sum_to(where(limited, t, zero_like(t)), context.inputs[1].shape());
    t = where(limited, zero_like(t), t);
  }
  if (wanted[0]) result[0] = t;
  return result;
}

Var tangent_or_zero(const DerivativeContext& context, std::span<const Var> tangents, std::size_t i) {
  return tangents[i].valid() ? (i ? flat(tangents[i]) : tangents[i]) : zero_like(context.inputs[0]);
}

std::vector<Var> jvp_clip(const DerivativeContext& context, std::span<const Var> tangents) {
  Var t = tangent_or_zero(context, tangents, 0);
  if (context.has(1)) t = where(below(context), tangent_or_zero(context, tangents, 1), t);
  if (context.has(2)) t = where(above(context), tangent_or_zero(context, tangents, 2), t);
  return {expand_to(t, context.outputs[0].shape())};
}

std::vector<ValueType> infer_prelu(const InferContext& context) {
  require_numeric(context, 0, "X");
  require_same_element(context, 1, "slope", 0, "X");
  const Shape shape = broadcast_inputs(context);
  require(shape == context.input(0).shape, "input slope has shape " + to_string(context.input(1).shape) +
                                               ", expected one that broadcasts to X's " +
                                               to_string(context.input(0).shape));
  return {context.input(0)};
}

void evaluate_prelu(const EvaluateContext& context) {
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    std::vector<W> x = widen<W>(context.input(0));
    const std::vector<W> slope = widen_to<W>(context.input(1), context.input(0).shape());
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] < W{}) x[i] *= slope[i];
    narrow(x, context.output(0));
  });
}

std::vector<Var> vjp_prelu(const DerivativeContext& context, std::span<const Var> cotangents,
                           const std::vector<bool>& wanted) {
  const Var x = context.inputs[0], slope = context.inputs[1], t = cotangents[0];
  const Var negative = less(x, zero_like(x));
  std::vector<Var> result(2);
  if (wanted[0]) result[0] = where(negative, t * slope, t);
  if (wanted[1]) result[1] = sum_to(where(negative, t * x, zero_like(t)), slope.shape());
  return result;
}

std::vector<Var> jvp_prelu(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var x = context.inputs[0], slope = context.inputs[1], negative = less(x, zero_like(x));
  Var total;
  if (tangents[0].valid()) total = where(negative, tangents[0] * slope, tangents[0]);
  if (tangents[1].valid()) total = sum_valid(total, where(negative, tangents[1] * x, zero_like(x)));
  return {total};
}

}  // namespace

Var clip(Var x, Var low, Var high) { return x.builder().node1("Clip", {x, low, high}); }
Var clip(Var x, double low, double high) { return clip(x, constant_like(x, low), constant_like(x, high)); }
Var prelu(Var x, Var slope) { return x.builder().node1("PRelu", {x, slope}); }

std::span<const Definition> clip_operators() {
  static const Definition definitions[] = {
      {.name = "Clip",
       .since_opset = 13,
       .max_inputs = 3,
       .traits =
           elementwise_traits(Elements::numeric, {.attributes = "max min", .precision = Precision::follows}),
       .infer = infer_clip,
       .evaluate = evaluate_clip,
       .vjp = vjp_clip,
       .jvp = jvp_clip},
      {.name = "PRelu",
       .since_opset = 16,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = elementwise_traits(Elements::numeric, {.precision = Precision::follows}),
       .infer = infer_prelu,
       .evaluate = evaluate_prelu,
       .vjp = vjp_prelu,
       .jvp = jvp_prelu},
  };
  return definitions;
}

}  // namespace superstep::op
