#include "superstep/op/elementwise/integer.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/elementwise_traits.h"
#include "superstep/op/elementwise/unary.h"

namespace superstep::op {
namespace {

template <class Function>
void evaluate_pairs(const EvaluateContext& context, Function&& function) {
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const Shape& shape = context.output(0).shape();
    std::vector<W> a = widen_to<W>(context.input(0), shape);
    const std::vector<W> b = widen_to<W>(context.input(1), shape);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = function(a[i], b[i]);
    narrow(a, context.output(0));
  });
}

std::vector<ValueType> infer_mod(const InferContext& context) {
  require_numeric(context, 0, "A");
  require_same_element(context, 1, "B", 0, "A");
  return {{context.input(0).element, broadcast_inputs(context)}};
}

// With the sign of b: operator set 28 has it for floating types too.
double floored_remainder(double a, double b) {
  const double result = std::fmod(a, b);
  if (result == 0) return std::copysign(result, b);
  return (result < 0) != (b < 0) ? result + b : result;
}

template <class W>
W remainder(W a, W b, bool like_fmod) {
  if constexpr (std::is_same_v<W, double>)
    return like_fmod ? std::fmod(a, b) : floored_remainder(a, b);
  else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<W>) {
      if (b == -1) return 0;  // the quotient of the smallest integer would overflow
      const W result = a % b;
      return !like_fmod && result != 0 && (result < 0) != (b < 0) ? result + b : result;
    }
    return a % b;
  }
}

void evaluate_mod(const EvaluateContext& context) {
  const bool like_fmod = context.attributes.integer("fmod", 0) != 0;
  evaluate_pairs(context, [=](auto a, auto b) { return remainder(a, b, like_fmod); });
}

// a - b trunc(a / b) like fmod, else a - b floor(a / b).
Var mod_by_divisor(const DerivativeContext& context, Var t) {
  const Var quotient = context.inputs[0] / context.inputs[1];
  const bool like_fmod = context.attributes.integer("fmod", 0) != 0;
  return -(t * (like_fmod ? sign(quotient) * floor(abs(quotient)) : floor(quotient)));
}

std::vector<Var> vjp_mod(const DerivativeContext& context, std::span<const Var> cotangents,
                         const std::vector<bool>& wanted) {
  const Var a = context.inputs[0], b = context.inputs[1], t = cotangents[0];
  return {wanted[0] ? sum_to(t, a.shape()) : Var(),
          wanted[1] ? sum_to(mod_by_divisor(context, t), b.shape()) : Var()};
}

std::vector<Var> jvp_mod(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var by_divisor = tangents[1].valid() ? mod_by_divisor(context, tangents[1]) : Var();
  return {expand_to(sum_valid(tangents[0], by_divisor), context.outputs[0].shape())};
}

bool shifts_left(const Attributes& attributes) {
  const std::string direction = attributes.text("direction");
  require(direction == "LEFT" || direction == "RIGHT",
          fmt::format("attribute 'direction' is '{}', expected LEFT or RIGHT", direction));
  return direction == "LEFT";
}

std::vector<ValueType> infer_shift(const InferContext& context) {
  const ElementType element = context.input(0).element;
  shifts_left(context.attributes);
  require_integer(context, 0, "X");
  require_same_element(context, 1, "Y", 0, "X");
  return {{element, broadcast_inputs(context)}};
}

// Signed numbers shift to the right by copies of their sign. A shift that is negative, or by all bits or
// more, leaves nothing but those copies (operator set 28).
void evaluate_shift(const EvaluateContext& context) {
  const bool left = shifts_left(context.attributes);
  const auto bits = static_cast<std::int64_t>(8 * size_in_bytes(context.input(0).type()));
  evaluate_pairs(context, [=]<class W>(W a, W b) -> W {
    if constexpr (std::is_same_v<W, double>) {
      return W{};  // refused by the shape rule
    } else {
      if (b < W{} || b >= static_cast<W>(bits)) return !left && a < W{} ? static_cast<W>(-1) : W{};
      return left ? static_cast<W>(static_cast<std::uint64_t>(a) << b) : static_cast<W>(a >> b);
    }
  });
}

std::vector<ValueType> infer_bitwise(const InferContext& context) {
  require_integer(context, 0, "A");
  require_same_element(context, 1, "B", 0, "A");
  return {{context.input(0).element, broadcast_inputs(context)}};
}

std::vector<ValueType> infer_not(const InferContext& context) {
  require_integer(context, 0, "X");
  return {context.input(0)};
}

// On the bits of 64-bit integers; floating types were refused by the shape rule.
template <class Bits>
void evaluate_bits(const EvaluateContext& context, Bits bits) {
  evaluate_pairs(context, [=]<class W>(W a, W b) -> W {
    if constexpr (std::is_same_v<W, double>)
      return W{};
    else
      return bits(a, b);
  });
}

void evaluate_and(const EvaluateContext& context) {
  evaluate_bits(context, [](auto a, auto b) { return a & b; });
}
void evaluate_or(const EvaluateContext& context) {
  evaluate_bits(context, [](auto a, auto b) { return a | b; });
}
void evaluate_xor(const EvaluateContext& context) {
  evaluate_bits(context, [](auto a, auto b) { return a ^ b; });
}

void evaluate_not(const EvaluateContext& context) {
  auto values = widen<std::int64_t>(context.input(0));
  for (std::int64_t& value : values) value = ~value;
  narrow(values, context.output(0));
}

}  // namespace

Var mod(Var a, Var b, bool like_fmod) {
  return a.builder().node1("Mod", {a, b}, {{"fmod", std::int64_t{like_fmod}}});
}
Var bit_shift(Var a, Var b, const std::string& direction) {
  return a.builder().node1("BitShift", {a, b}, {{"direction", direction}});
}
Var bitwise_and(Var a, Var b) { return a.builder().node1("BitwiseAnd", {a, b}); }
Var bitwise_or(Var a, Var b) { return a.builder().node1("BitwiseOr", {a, b}); }
Var bitwise_xor(Var a, Var b) { return a.builder().node1("BitwiseXor", {a, b}); }
Var bitwise_not(Var a) { return a.builder().node1("BitwiseNot", {a}); }

std::span<const Definition> integer_operators() {
  static const Definition definitions[] = {
      {.name = "Mod",
       .since_opset = 13,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = elementwise_traits(Elements::numeric, {.attributes = "fmod"}),
       .infer = infer_mod,
       .evaluate = evaluate_mod,
       .vjp = vjp_mod,
       .jvp = jvp_mod},
      definition_without_slope("BitShift", 11, 2,
                               elementwise_traits(Elements::integer, {.attributes = "direction"}),
                               infer_shift, evaluate_shift),
      definition_without_slope("BitwiseAnd", 18, 2, elementwise_traits(Elements::integer), infer_bitwise,
                               evaluate_and),
      definition_without_slope("BitwiseOr", 18, 2, elementwise_traits(Elements::integer), infer_bitwise,
                               evaluate_or),
      definition_without_slope("BitwiseXor", 18, 2, elementwise_traits(Elements::integer), infer_bitwise,
                               evaluate_xor),
      definition_without_slope("BitwiseNot", 18, 1, elementwise_traits(Elements::integer), infer_not,
                               evaluate_not),
  };
  return definitions;
}

}  // namespace superstep::op
