#include "superstep/op/training/optimizer_parts.h"

#include "superstep/op/core/checks.h"
#include "superstep/op/core/derivative.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/unary.h"

namespace superstep::op {

void check_parameter(const InferContext& context, std::size_t rate) {
  require_floating(context, 0, "parameter");
  require_floating(context, 1, "gradient");
  require_shape(context, 1, "gradient", context.input(0).shape);
  require_floating(context, rate, "rate");
  require_scalar(context, rate, "rate");
}

void check_buffer(const InferContext& context, std::size_t input, const char* name) {
  require_shape(context, input, name, context.input(0).shape);
  require_same_element(context, input, name, 0, "parameter");
}

Var scalar_like(Var value, Var like) { return sum_to(cast(value, like.element()), {}); }

Var count_of(Var step) { return sum_to(cast(step, ElementType::f64), {}) + 1.0; }

Var correction(Var t, double beta, ElementType element) {
  return cast(1.0 - pow(constant_like(t, beta), t), element);
}

Var decayed_gradient(const DerivativeContext& context, double weight_decay) {
  const Var p = context.inputs[0], g = cast(context.inputs[1], p.element());
  return weight_decay != 0 ? g + p * weight_decay : g;
}

}  // namespace superstep::op
