#include "superstep/op/elementwise/arithmetic.h"

#include <cmath>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/elementwise_traits.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"

namespace superstep::op {
namespace {

// Integers wrap around, as in NumPy: computed without the undefined behaviour of signed overflow.
template <class W, class F>
W wrapping(W a, W b, F f) {
  if constexpr (std::is_same_v<W, double>)
    return f(a, b);
  else
    return static_cast<W>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
}

// A rule of two inputs: the value, and t times the partial derivative by each input.
struct Add {
  static constexpr std::string_view name = "Add";
  static constexpr int opset = 14;
  static constexpr Traits traits = elementwise_traits(Elements::numeric, {.batch = batch::additive,
                                                                          .attributes = "axis broadcast",
                                                                          .f32_since = 13,
                                                                          .precision = Precision::follows});
  template <class W>
  static W value(W a, W b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
  static Var by_a(Var, Var, Var, Var t) { return t; }
  static Var by_b(Var, Var, Var, Var t) { return t; }
};

struct Sub {
  static constexpr std::string_view name = "Sub";
  static constexpr int opset = 14;
  static constexpr Traits traits = elementwise_traits(Elements::numeric, {.batch = batch::additive,
                                                                          .attributes = "axis broadcast",
                                                                          .f32_since = 13,
                                                                          .precision = Precision::follows});
  template <class W>
  static W value(W a, W b) {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
  static Var by_a(Var, Var, Var, Var t) { return t; }
  static Var by_b(Var, Var, Var, Var t) { return -t; }
};

struct Mul {
  static constexpr std::string_view name = "Mul";
  static constexpr int opset = 14;
  static constexpr Traits traits = elementwise_traits(Elements::numeric, {.batch = batch::multiplied,
                                                                          .attributes = "axis broadcast",
                                                                          .f32_since = 13,
                                                                          .precision = Precision::follows});
  template <class W>
  static W value(W a, W b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
  static Var by_a(Var, Var b, Var, Var t) { return t * b; }
  static Var by_b(Var a, Var, Var, Var t) { return t * a; }
};

struct Div {
  static constexpr std::string_view name = "Div";
  static constexpr int opset = 14;
  static constexpr Traits traits = elementwise_traits(
      Elements::numeric,
      {.batch = batch::divided, .attributes = "axis broadcast", .f32_since = 13, .effort = Effort::function});
  template <class W>
  static W value(W a, W b) {
    if constexpr (std::is_same_v<W, double>)
      return a / b;
    else if (b == W{})
      return W{};
    else if constexpr (std::is_signed_v<W>)
      return b == -1 ? Sub::value(W{}, a) : a / b;
    else
      return a / b;
  }
  static Var by_a(Var, Var b, Var, Var t) { return t / b; }
  static Var by_b(Var, Var b, Var y, Var t) { return -(t * y / b); }
};

template <class Rule>
std::vector<ValueType> infer_binary(const InferContext& context) {
  require_numeric(context, 0, "A");
  require_same_element(context, 1, "B", 0, "A");
  return {{context.input(0).element, broadcast_inputs(context)}};
}

template <class Rule>
void evaluate_binary(const EvaluateContext& context) {
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const Shape& shape = context.output(0).shape();
    std::vector<W> a = widen_to<W>(context.input(0), shape);
    const std::vector<W> b = widen_to<W>(context.input(1), shape);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = Rule::value(a[i], b[i]);
    narrow(a, context.output(0));
  });
}

template <class Rule>
std::vector<Var> vjp_binary(const DerivativeContext& context, std::span<const Var> cotangents,
                            const std::vector<bool>& wanted) {
  const Var a = context.inputs[0], b = context.inputs[1], y = context.outputs[0], t = cotangents[0];
  return {wanted[0] ? sum_to(Rule::by_a(a, b, y, t), a.shape()) : Var(),
          wanted[1] ? sum_to(Rule::by_b(a, b, y, t), b.shape()) : Var()};
}

template <class Rule>
std::vector<Var> jvp_binary(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var a = context.inputs[0], b = context.inputs[1], y = context.outputs[0];
  const Var by_a = tangents[0].valid() ? Rule::by_a(a, b, y, tangents[0]) : Var();
  const Var by_b = tangents[1].valid() ? Rule::by_b(a, b, y, tangents[1]) : Var();
  return {expand_to(sum_valid(by_a, by_b), y.shape())};
}

template <class Rule>
Definition binary_definition() {
  return {.name = Rule::name,
          .since_opset = Rule::opset,
          .min_inputs = 2,
          .max_inputs = 2,
          .traits = Rule::traits,
          .infer = infer_binary<Rule>,
          .evaluate = evaluate_binary<Rule>,
          .vjp = vjp_binary<Rule>,
          .jvp = jvp_binary<Rule>};
}

// Pow: the exponent may be of another element type; the result has the base's.
std::vector<ValueType> infer_pow(const InferContext& context) {
  require_numeric(context, 0, "X");
  require_numeric(context, 1, "Y");
  return {{context.input(0).element, broadcast_inputs(context)}};
}

template <class W>
W integer_power(W base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? W{1} : W{0};
  W result = 1;
  for (; exponent; exponent >>= 1, base = Mul::value(base, base))
    if (exponent & 1) result = Mul::value(result, base);
  return result;
}

void evaluate_pow(const EvaluateContext& context) {
  Tensor& y = context.output(0);
  const bool integers = !is_floating(context.input(0).type()) && !is_floating(context.input(1).type());
  if (!integers) {
    std::vector<double> base = widen_to<double>(context.input(0), y.shape());
    const std::vector<double> exponent = widen_to<double>(context.input(1), y.shape());
    for (std::size_t i = 0; i < base.size(); ++i) base[i] = std::pow(base[i], exponent[i]);
    return narrow(base, y);
  }
  dispatch_wide(y.type(), [&]<class W>() {
    if constexpr (!std::is_same_v<W, double>) {
      std::vector<W> base = widen_to<W>(context.input(0), y.shape());
      const auto exponent = widen_to<std::int64_t>(context.input(1), y.shape());
      for (std::size_t i = 0; i < base.size(); ++i) base[i] = integer_power(base[i], exponent[i]);
      narrow(base, y);
    }
  });
}

Var pow_by_base(Var x, Var exponent, Var t) {
  const Var n = cast(exponent, x.element());
  return t * n * pow(x, n - 1.0);
}

// x^n log x; the limit 0 at x = 0, and nothing for negative x, where the power is not differentiable in n.
Var pow_by_exponent(Var x, Var y, Var t) {
  const Var positive = greater(x, constant_like(x, 0));
  return t * y * log(where(positive, x, constant_like(x, 1)));
}

std::vector<Var> vjp_pow(const DerivativeContext& context, std::span<const Var> cotangents,
                         const std::vector<bool>& wanted) {
  const Var x = context.inputs[0], n = context.inputs[1], y = context.outputs[0];
  std::vector<Var> result(2);
  if (wanted[0]) result[0] = sum_to(pow_by_base(x, n, cotangents[0]), x.shape());
  if (wanted[1]) result[1] = sum_to(cast(pow_by_exponent(x, y, cotangents[0]), n.element()), n.shape());
  return result;
}

std::vector<Var> jvp_pow(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var x = context.inputs[0], n = context.inputs[1], y = context.outputs[0];
  Var by_base, by_exponent;
  if (tangents[0].valid()) by_base = pow_by_base(x, n, tangents[0]);
  if (tangents[1].valid()) by_exponent = pow_by_exponent(x, y, cast(tangents[1], x.element()));
  return {expand_to(sum_valid(by_base, by_exponent), y.shape())};
}

// Min, Max, Sum and Mean of any number of inputs.
std::vector<ValueType> infer_variadic(const InferContext& context) {
  require_numeric(context, 0, "data_0");
  for (std::size_t i = 1; i < context.inputs.size(); ++i)
    require_same_element(context, i, "data_" + std::to_string(i), 0, "data_0");
  return {{context.input(0).element, broadcast_inputs(context)}};
}

template <class Combine>
void evaluate_variadic(const EvaluateContext& context, Combine combine, double scale = 1) {
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const Shape& shape = context.output(0).shape();
    std::vector<W> total = widen_to<W>(context.input(0), shape);
    for (std::size_t k = 1; k < context.inputs.size(); ++k) {
      const std::vector<W> next = widen_to<W>(context.input(k), shape);
      for (std::size_t i = 0; i < total.size(); ++i) total[i] = combine(total[i], next[i]);
    }
    if (scale != 1)
      for (W& value : total) value = static_cast<W>(static_cast<double>(value) * scale);
    narrow(total, context.output(0));
  });
}

// NaN wins, as in NumPy's minimum and maximum.
void evaluate_min(const EvaluateContext& context) {
  evaluate_variadic(context, [](auto a, auto b) { return a < b || a != a ? a : b; });
}
void evaluate_max(const EvaluateContext& context) {
  evaluate_variadic(context, [](auto a, auto b) { return a > b || a != a ? a : b; });
}
void evaluate_sum(const EvaluateContext& context) {
  evaluate_variadic(context, [](auto a, auto b) { return Add::value(a, b); });
}
void evaluate_mean(const EvaluateContext& context) {
  evaluate_variadic(
      context, [](auto a, auto b) { return Add::value(a, b); },
      1.0 / static_cast<double>(context.inputs.size()));
}

// 1 / (number of inputs equal to the result), where input i is equal to it; else 0.
std::vector<Var> extreme_shares(const DerivativeContext& context) {
  const Var y = context.outputs[0];
  std::vector<Var> shares;
  Var ties;
  for (Var input : context.inputs) {
    shares.push_back(cast(equal(input, y), y.element()));
    ties = sum_valid(ties, shares.back());
  }
  for (Var& share : shares) share = share / ties;
  return shares;
}

std::vector<Var> vjp_extreme(const DerivativeContext& context, std::span<const Var> cotangents,
                             const std::vector<bool>& wanted) {
  std::vector<Var> result = extreme_shares(context);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = wanted[i] ? sum_to(cotangents[0] * result[i], context.inputs[i].shape()) : Var();
  return result;
}

std::vector<Var> jvp_extreme(const DerivativeContext& context, std::span<const Var> tangents) {
  const std::vector<Var> shares = extreme_shares(context);
  Var total;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (tangents[i].valid()) total = sum_valid(total, tangents[i] * shares[i]);
  return {total};
}

double variadic_scale(const DerivativeContext& context, bool is_mean) {
  return is_mean ? 1.0 / static_cast<double>(context.inputs.size()) : 1.0;
}

template <bool is_mean>
std::vector<Var> vjp_sum(const DerivativeContext& context, std::span<const Var> cotangents,
                         const std::vector<bool>& wanted) {
  const Var scaled = is_mean ? cotangents[0] * variadic_scale(context, is_mean) : cotangents[0];
  std::vector<Var> result(context.inputs.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    if (wanted[i]) result[i] = sum_to(scaled, context.inputs[i].shape());
  return result;
}

template <bool is_mean>
std::vector<Var> jvp_sum(const DerivativeContext& context, std::span<const Var> tangents) {
  Var total;
  for (Var tangent : tangents) total = sum_valid(total, tangent);
  if (is_mean) total = total * variadic_scale(context, is_mean);
  return {expand_to(total, context.outputs[0].shape())};
}

double variadic_flops(const Attributes&, std::span<const ValueType> inputs,
                      std::span<const ValueType> outputs) {
  return static_cast<double>(inputs.size() - 1) * static_cast<double>(outputs[0].shape.element_count());
}

Definition variadic_definition(std::string_view name, const Traits& more,
                               decltype(Definition::evaluate) evaluate, decltype(Definition::vjp) vjp,
                               decltype(Definition::jvp) jvp) {
  return {.name = name,
          .since_opset = 13,
          .max_inputs = -1,
          .traits = elementwise_traits(Elements::numeric, more),
          .infer = infer_variadic,
          .flops = variadic_flops,
          .evaluate = evaluate,
          .vjp = vjp,
          .jvp = jvp};
}

Var variadic(std::string_view op, std::span<const Var> inputs) {
  if (inputs.empty()) throw Error(ErrorCode::bad_graph, "takes one input or more", std::string(op));
  return inputs[0].builder().node(op, inputs).at(0);
}

}  // namespace

Var operator+(Var a, Var b) { return a.builder().node1("Add", {a, b}); }
Var operator-(Var a, Var b) { return a.builder().node1("Sub", {a, b}); }
Var operator*(Var a, Var b) { return a.builder().node1("Mul", {a, b}); }
Var operator/(Var a, Var b) { return a.builder().node1("Div", {a, b}); }
Var pow(Var base, Var exponent) { return base.builder().node1("Pow", {base, exponent}); }

Var operator+(Var a, double b) { return a + constant_like(a, b); }
Var operator-(Var a, double b) { return a - constant_like(a, b); }
Var operator-(double a, Var b) { return constant_like(b, a) - b; }
Var operator*(Var a, double b) { return a * constant_like(a, b); }
Var operator*(double a, Var b) { return b * a; }
Var operator/(Var a, double b) { return a / constant_like(a, b); }
Var operator/(double a, Var b) { return constant_like(b, a) / b; }
Var pow(Var base, double exponent) { return pow(base, constant_like(base, exponent)); }

Var min(std::span<const Var> inputs) { return variadic("Min", inputs); }
Var max(std::span<const Var> inputs) { return variadic("Max", inputs); }
Var sum(std::span<const Var> inputs) { return variadic("Sum", inputs); }
Var mean(std::span<const Var> inputs) { return variadic("Mean", inputs); }

std::span<const Definition> arithmetic_operators() {
  static const Definition definitions[] = {
      binary_definition<Add>(),
      binary_definition<Sub>(),
      binary_definition<Mul>(),
      binary_definition<Div>(),
      {.name = "Pow",
       .since_opset = 15,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = elementwise_traits(
           Elements::numeric, {.attributes = "axis broadcast", .f32_since = 13, .effort = Effort::functions}),
       .infer = infer_pow,
       .evaluate = evaluate_pow,
       .vjp = vjp_pow,
       .jvp = jvp_pow},
      variadic_definition("Min", {.precision = Precision::follows}, evaluate_min, vjp_extreme, jvp_extreme),
      variadic_definition("Max", {.precision = Precision::follows}, evaluate_max, vjp_extreme, jvp_extreme),
      variadic_definition("Sum", {.batch = batch::additive}, evaluate_sum, vjp_sum<false>, jvp_sum<false>),
      variadic_definition("Mean", {.batch = batch::additive}, evaluate_mean, vjp_sum<true>, jvp_sum<true>),
  };
  return definitions;
}

}  // namespace superstep::op
