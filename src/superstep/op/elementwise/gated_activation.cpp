// Activations of two inputs.
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"

namespace superstep::op {
namespace {

std::vector<ValueType> infer_swiglu(const InferContext& context) {
  require_floating(context, 0, "A");
  require_same_element(context, 1, "B", 0, "A");
  require_shape(context, 1, "B", context.input(0).shape);
  return {context.input(0)};
}

std::vector<Var> decompose_swiglu(const DerivativeContext& context) {
  return {swish(context.inputs[0], context.attributes.number("alpha", 1)) * context.inputs[1]};
}

}  // namespace

Var swiglu(Var a, Var b, double alpha) { return a.builder().node1("SwiGLU", {a, b}, {{"alpha", alpha}}); }

std::span<const Definition> gated_activation_operators() {
  static const Definition definitions[] = {composite<decompose_swiglu>(
      {"SwiGLU", 28, 2, 2}, infer_swiglu,
      {.elements = Elements::floating, .work = WorkKind::elementwise, .attributes = "alpha"})};
  return definitions;
}

}  // namespace superstep::op
