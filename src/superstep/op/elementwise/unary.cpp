#include "superstep/op/elementwise/unary.h"

#include <cmath>
#include <numbers>

#include "superstep/op/batch/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/elementwise_traits.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary_rule.h"

namespace superstep::op {
namespace {

struct Neg : NumericRule {
  using NumericRule::NumericRule;
  static constexpr std::string_view name = "Neg";
  static constexpr int opset = 13;
  static constexpr Traits traits =
      elementwise_traits(Elements::numeric, {.batch = batch::additive, .precision = Precision::follows});
  template <class W>
  W operator()(W x) const {
    if constexpr (std::is_same_v<W, double>)
      return -x;
    else
      return static_cast<W>(std::uint64_t{0} - static_cast<std::uint64_t>(x));
  }
  Var times_derivative(Var, Var, Var t) const { return -t; }
};

struct Abs : NumericRule {
  using NumericRule::NumericRule;
  static constexpr std::string_view name = "Abs";
  static constexpr int opset = 13;
  static constexpr Traits traits = elementwise_traits(Elements::numeric, {.precision = Precision::follows});
  template <class W>
  W operator()(W x) const {
    if constexpr (std::is_same_v<W, double>)
      return std::abs(x);
    else
      return x < W{} ? Neg{}(x) : x;
  }
  Var times_derivative(Var x, Var, Var t) const { return t * sign(x); }
};

struct Sign : NumericRule {
  using NumericRule::NumericRule;
  static constexpr std::string_view name = "Sign";
  static constexpr int opset = 13;
  template <class W>
  W operator()(W x) const {
    if constexpr (std::is_same_v<W, double>)
      if (std::isnan(x)) return x;
    return static_cast<W>(x > W{}) - static_cast<W>(x < W{});
  }
  Var times_derivative(Var, Var, Var) const { return {}; }
};

struct Exp : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Exp";
  static constexpr int opset = 13;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::function});
  double operator()(double x) const { return std::exp(x); }
  Var times_derivative(Var, Var y, Var t) const { return t * y; }
};

struct Log : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Log";
  static constexpr int opset = 13;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::function});
  double operator()(double x) const { return std::log(x); }
  Var times_derivative(Var x, Var, Var t) const { return t / x; }
};

struct Sqrt : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Sqrt";
  static constexpr int opset = 13;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::function});
  double operator()(double x) const { return std::sqrt(x); }
  Var times_derivative(Var, Var y, Var t) const { return t * 0.5 / y; }
};

struct Reciprocal : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Reciprocal";
  static constexpr int opset = 13;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::function});
  double operator()(double x) const { return 1.0 / x; }
  Var times_derivative(Var, Var y, Var t) const { return -(t * y * y); }
};

struct Erf : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Erf";
  static constexpr int opset = 13;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::functions});
  double operator()(double x) const { return std::erf(x); }
  Var times_derivative(Var x, Var, Var t) const {
    return t * (2.0 * std::numbers::inv_sqrtpi) * exp(-(x * x));
  }
};

struct Floor : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Floor";
  static constexpr int opset = 13;
  double operator()(double x) const { return std::floor(x); }
  Var times_derivative(Var, Var, Var) const { return {}; }
};

struct Ceil : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Ceil";
  static constexpr int opset = 13;
  double operator()(double x) const { return std::ceil(x); }
  Var times_derivative(Var, Var, Var) const { return {}; }
};

struct Round : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Round";
  static constexpr int opset = 11;
  double operator()(double x) const { return std::nearbyint(x); }
  Var times_derivative(Var, Var, Var) const { return {}; }
};

std::vector<ValueType> infer_identity(const InferContext& context) { return {context.input(0)}; }

void evaluate_identity(const EvaluateContext& context) {
  std::memcpy(context.output(0).bytes(), context.input(0).bytes(), context.input(0).byte_count());
}

std::vector<Var> vjp_identity(const DerivativeContext&, std::span<const Var> cotangents,
                              const std::vector<bool>&) {
  return {cotangents[0]};
}

std::vector<Var> jvp_identity(const DerivativeContext&, std::span<const Var> tangents) {
  return {tangents[0]};
}

double no_flops(const Attributes&, std::span<const ValueType>, std::span<const ValueType>) { return 0; }

}  // namespace

Var operator-(Var x) { return x.builder().node1("Neg", {x}); }
Var abs(Var x) { return x.builder().node1("Abs", {x}); }
Var sign(Var x) { return x.builder().node1("Sign", {x}); }
Var exp(Var x) { return x.builder().node1("Exp", {x}); }
Var log(Var x) { return x.builder().node1("Log", {x}); }
Var sqrt(Var x) { return x.builder().node1("Sqrt", {x}); }
Var reciprocal(Var x) { return x.builder().node1("Reciprocal", {x}); }
Var erf(Var x) { return x.builder().node1("Erf", {x}); }
Var floor(Var x) { return x.builder().node1("Floor", {x}); }
Var ceil(Var x) { return x.builder().node1("Ceil", {x}); }
Var round(Var x) { return x.builder().node1("Round", {x}); }
Var identity(Var x) { return x.builder().node1("Identity", {x}); }
Var of_whole_batch(Var x) {
  return x.builder().node1("Identity", {x}, {{"of_whole_batch", std::int64_t{1}}});
}

std::span<const Definition> unary_operators() {
  static const Definition definitions[] = {
      unary_definition<Neg>(),
      unary_definition<Abs>(),
      unary_definition<Sign>(),
      unary_definition<Exp>(),
      unary_definition<Log>(),
      unary_definition<Sqrt>(),
      unary_definition<Reciprocal>(),
      unary_definition<Erf>(),
      unary_definition<Floor>(),
      unary_definition<Ceil>(),
      unary_definition<Round>(),
      {.name = "Identity",
       .since_opset = 1,
       .traits = elementwise_traits(Elements::any, {.work = WorkKind::view,
                                                    .batch = batch::identity,
                                                    .view = View::same,
                                                    .precision = Precision::follows,
                                                    .moves_bytes = true}),
       .infer = infer_identity,
       .flops = no_flops,
       .evaluate = evaluate_identity,
       .vjp = vjp_identity,
       .jvp = jvp_identity},
  };
  return definitions;
}

}  // namespace superstep::op
