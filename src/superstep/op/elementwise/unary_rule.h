// Definitions of element-wise operators of one input, made from a rule each:
//
//   struct Exp : FloatingRule {                       // or NumericRule
//     static constexpr std::string_view name = "Exp";
//     static constexpr int opset = 13;
//     static constexpr Traits traits = ...;         // where it is not elementwise_traits(Elements::floating)
//     explicit Exp(const Attributes&);                // reads the attributes
//     double operator()(double x) const;              // a NumericRule: for 64-bit integers too
//     Var times_derivative(Var x, Var y, Var t) const;  // t dy/dx; an invalid Var is zero
//   };
#pragma once

#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/elementwise_traits.h"

namespace superstep::op {

struct FloatingRule {
  static constexpr bool floating_only = true;
  static constexpr Traits traits = elementwise_traits(Elements::floating);
  FloatingRule() = default;
  explicit FloatingRule(const Attributes&) {}
};

struct NumericRule {
  static constexpr bool floating_only = false;
  static constexpr Traits traits = elementwise_traits(Elements::numeric);
  NumericRule() = default;
  explicit NumericRule(const Attributes&) {}
};

template <class Rule>
std::vector<ValueType> infer_unary(const InferContext& context) {
  if constexpr (Rule::floating_only)
    require_floating(context, 0, "X");
  else
    require_numeric(context, 0, "X");
  return {context.input(0)};
}

template <class Rule>
void evaluate_unary(const EvaluateContext& context) {
  const Rule rule(context.attributes);
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    if constexpr (!Rule::floating_only || std::is_same_v<W, double>) {
      std::vector<W> values = widen<W>(context.input(0));
      for (W& value : values) value = rule(value);
      narrow(values, context.output(0));
    }
  });
}

template <class Rule>
std::vector<Var> vjp_unary(const DerivativeContext& context, std::span<const Var> cotangents,
                           const std::vector<bool>&) {
  return {Rule(context.attributes).times_derivative(context.inputs[0], context.outputs[0], cotangents[0])};
}

template <class Rule>
std::vector<Var> jvp_unary(const DerivativeContext& context, std::span<const Var> tangents) {
  return {Rule(context.attributes).times_derivative(context.inputs[0], context.outputs[0], tangents[0])};
}

template <class Rule>
Definition unary_definition() {
  return {.name = Rule::name,
          .since_opset = Rule::opset,
          .traits = Rule::traits,
          .infer = infer_unary<Rule>,
          .evaluate = evaluate_unary<Rule>,
          .vjp = vjp_unary<Rule>,
          .jvp = jvp_unary<Rule>};
}

}  // namespace superstep::op
