#include "superstep/op/elementwise/logic.h"

#include <cmath>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/elementwise_traits.h"

namespace superstep::op {
namespace {

struct Equal {
  static constexpr std::string_view name = "Equal";
  static constexpr Traits traits = elementwise_traits(Elements::any, {.attributes = "axis broadcast"});
  static constexpr bool on_bool = true, on_numbers = true;
  static bool value(auto a, auto b) { return a == b; }
};
struct Greater {
  static constexpr std::string_view name = "Greater";
  static constexpr Traits traits = elementwise_traits(Elements::numeric, {.attributes = "axis broadcast"});
  static constexpr bool on_bool = false, on_numbers = true;
  static bool value(auto a, auto b) { return a > b; }
};
struct GreaterOrEqual {
  static constexpr std::string_view name = "GreaterOrEqual";
  static constexpr Traits traits = elementwise_traits(Elements::numeric, {.f32_since = 13});
  static constexpr bool on_bool = false, on_numbers = true;
  static bool value(auto a, auto b) { return a >= b; }
};
struct Less {
  static constexpr std::string_view name = "Less";
  static constexpr Traits traits = elementwise_traits(Elements::numeric, {.attributes = "axis broadcast"});
  static constexpr bool on_bool = false, on_numbers = true;
  static bool value(auto a, auto b) { return a < b; }
};
struct LessOrEqual {
  static constexpr std::string_view name = "LessOrEqual";
  static constexpr Traits traits = elementwise_traits(Elements::numeric, {.f32_since = 13});
  static constexpr bool on_bool = false, on_numbers = true;
  static bool value(auto a, auto b) { return a <= b; }
};
struct And {
  static constexpr std::string_view name = "And";
  static constexpr Traits traits = elementwise_traits(Elements::boolean, {.attributes = "axis broadcast"});
  static constexpr bool on_bool = true, on_numbers = false;
  static bool value(auto a, auto b) { return a && b; }
};
struct Or {
  static constexpr std::string_view name = "Or";
  static constexpr Traits traits = elementwise_traits(Elements::boolean, {.attributes = "axis broadcast"});
  static constexpr bool on_bool = true, on_numbers = false;
  static bool value(auto a, auto b) { return a || b; }
};
struct Xor {
  static constexpr std::string_view name = "Xor";
  static constexpr Traits traits = elementwise_traits(Elements::boolean, {.attributes = "axis broadcast"});
  static constexpr bool on_bool = true, on_numbers = false;
  static bool value(auto a, auto b) { return (a != 0) != (b != 0); }
};

template <class Rule>
std::vector<ValueType> infer_predicate(const InferContext& context) {
  if (!Rule::on_bool) require_numeric(context, 0, "A");
  if (!Rule::on_numbers) require_boolean(context, 0, "A");
  require_same_element(context, 1, "B", 0, "A");
  return {{ElementType::boolean, broadcast_inputs(context)}};
}

template <class Rule>
void evaluate_predicate(const EvaluateContext& context) {
  auto y = context.output(0).as<bool>();
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const std::vector<W> a = widen_to<W>(context.input(0), context.output(0).shape());
    const std::vector<W> b = widen_to<W>(context.input(1), context.output(0).shape());
    for (std::size_t i = 0; i < a.size(); ++i) y[i] = Rule::value(a[i], b[i]);
  });
}

template <class Rule>
Definition predicate_definition(int opset) {
  return {.name = Rule::name,
          .since_opset = opset,
          .min_inputs = 2,
          .max_inputs = 2,
          .traits = Rule::traits,
          .infer = infer_predicate<Rule>,
          .evaluate = evaluate_predicate<Rule>,
          .vjp = zero_vjp,
          .jvp = zero_jvp};
}

std::vector<ValueType> infer_not(const InferContext& context) {
  require_boolean(context, 0, "X");
  return {context.input(0)};
}

void evaluate_not(const EvaluateContext& context) {
  std::ranges::transform(context.input(0).as<bool>(), context.output(0).as<bool>().begin(),
                         [](bool x) { return !x; });
}

std::vector<ValueType> infer_float_test(const InferContext& context) {
  require_floating(context, 0, "X");
  return {{ElementType::boolean, context.input(0).shape}};
}

void evaluate_is_nan(const EvaluateContext& context) {
  std::ranges::transform(widen<double>(context.input(0)), context.output(0).as<bool>().begin(),
                         [](double x) { return std::isnan(x); });
}

void evaluate_is_inf(const EvaluateContext& context) {
  const bool positive = context.attributes.integer("detect_positive", 1) != 0;
  const bool negative = context.attributes.integer("detect_negative", 1) != 0;
  std::ranges::transform(widen<double>(context.input(0)), context.output(0).as<bool>().begin(),
                         [=](double x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

std::vector<ValueType> infer_where(const InferContext& context) {
  require_boolean(context, 0, "condition");
  require_same_element(context, 2, "Y", 1, "X");
  return {{context.input(1).element, broadcast_inputs(context)}};
}

void evaluate_where(const EvaluateContext& context) {
  Tensor& y = context.output(0);
  const auto chosen = widen_to<std::uint64_t>(context.input(0), y.shape());
  dispatch_wide(y.type(), [&]<class W>() {
    std::vector<W> a = widen_to<W>(context.input(1), y.shape());
    const std::vector<W> b = widen_to<W>(context.input(2), y.shape());
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!chosen[i]) a[i] = b[i];
    narrow(a, y);
  });
}

std::vector<Var> vjp_where(const DerivativeContext& context, std::span<const Var> cotangents,
                           const std::vector<bool>& wanted) {
  const Var condition = context.inputs[0], t = cotangents[0], zero = constant_like(t, 0);
  std::vector<Var> result(3);
  if (wanted[1]) result[1] = sum_to(where(condition, t, zero), context.inputs[1].shape());
  if (wanted[2]) result[2] = sum_to(where(condition, zero, t), context.inputs[2].shape());
  return result;
}

std::vector<Var> jvp_where(const DerivativeContext& context, std::span<const Var> tangents) {
  if (!tangents[1].valid() && !tangents[2].valid()) return {Var()};
  const Var zero = constant_like(context.outputs[0], 0);
  const Var t = where(context.inputs[0], tangents[1].valid() ? tangents[1] : zero,
                      tangents[2].valid() ? tangents[2] : zero);
  return {expand_to(t, context.outputs[0].shape())};
}

}  // namespace

Var equal(Var a, Var b) { return a.builder().node1("Equal", {a, b}); }
Var greater(Var a, Var b) { return a.builder().node1("Greater", {a, b}); }
Var greater_or_equal(Var a, Var b) { return a.builder().node1("GreaterOrEqual", {a, b}); }
Var less(Var a, Var b) { return a.builder().node1("Less", {a, b}); }
Var less_or_equal(Var a, Var b) { return a.builder().node1("LessOrEqual", {a, b}); }
Var logical_and(Var a, Var b) { return a.builder().node1("And", {a, b}); }
Var logical_or(Var a, Var b) { return a.builder().node1("Or", {a, b}); }
Var logical_xor(Var a, Var b) { return a.builder().node1("Xor", {a, b}); }
Var logical_not(Var a) { return a.builder().node1("Not", {a}); }
Var is_nan(Var x) { return x.builder().node1("IsNaN", {x}); }
Var where(Var condition, Var a, Var b) { return a.builder().node1("Where", {condition, a, b}); }

std::span<const Definition> logic_operators() {
  static const Definition definitions[] = {
      predicate_definition<Equal>(13),
      predicate_definition<Greater>(13),
      predicate_definition<GreaterOrEqual>(16),
      predicate_definition<Less>(13),
      predicate_definition<LessOrEqual>(16),
      predicate_definition<And>(7),
      predicate_definition<Or>(7),
      predicate_definition<Xor>(7),
      {.name = "Not",
       .traits = elementwise_traits(Elements::boolean),
       .infer = infer_not,
       .evaluate = evaluate_not,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
      {.name = "IsNaN",
       .since_opset = 13,
       .traits = elementwise_traits(Elements::floating),
       .infer = infer_float_test,
       .evaluate = evaluate_is_nan,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
      {.name = "IsInf",
       .since_opset = 10,
       .traits = elementwise_traits(Elements::floating, {.attributes = "detect_negative detect_positive"}),
       .infer = infer_float_test,
       .evaluate = evaluate_is_inf,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
      {.name = "Where",
       .since_opset = 16,
       .min_inputs = 3,
       .max_inputs = 3,
       .traits = elementwise_traits(Elements::any, {.f32_since = 13, .precision = Precision::follows}),
       .infer = infer_where,
       .evaluate = evaluate_where,
       .vjp = vjp_where,
       .jvp = jvp_where},
  };
  return definitions;
}

}  // namespace superstep::op
