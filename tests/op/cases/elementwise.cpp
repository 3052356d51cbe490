#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

Function apply(const char* op) {
  return [op](Builder& b, std::span<const Var> x) { return std::vector<Var>{b.node(op, x).at(0)}; };
}

Case on_normal(const char* op, Smooth smooth = Smooth::twice) {
  return {op, "normal numbers", apply(op), {random_tensor({3, 5}, 11)}, smooth};
}
Case on_positive(const char* op) {
  return {op, "positive numbers", apply(op), {uniform_tensor({3, 5}, 12, 0.5, 3)}};
}

Case pair(const char* op, const char* name, Shape a, Shape b, Smooth smooth = Smooth::twice) {
  return {op, name, apply(op), {random_tensor(a, 13), random_tensor(b, 14)}, smooth};
}

}  // namespace

std::vector<Case> elementwise_cases() {
  const Tensor a = random_tensor({2, 3, 4}, 1), row = random_tensor({4}, 2),
               column = random_tensor({3, 1}, 3);
  const Tensor scalar = random_tensor({}, 4), away = uniform_tensor({3, 4}, 5, 0.5, 2);
  const Tensor chosen = booleans({3, 1}, {1, 0, 1}), numbers = i64({2, 3}, {-3, 0, 5, 7, -1, 2});
  return {
      on_normal("Neg"),
      on_normal("Abs"),
      on_normal("Sign", Smooth::zero),
      on_normal("Exp"),
      on_positive("Log"),
      on_positive("Sqrt"),
      on_positive("Reciprocal"),
      on_normal("Erf"),
      on_normal("Floor", Smooth::zero),
      on_normal("Ceil", Smooth::zero),
      on_normal("Round", Smooth::zero),
      on_normal("Identity"),
      {"Neg", "integers", apply("Neg"), {numbers}, Smooth::no},
      {"Abs", "integers", apply("Abs"), {numbers}, Smooth::no},
      {"Sign", "integers", apply("Sign"), {numbers}, Smooth::no},
      pair("Add", "same shape", {3, 4}, {3, 4}),
      pair("Add", "row", {2, 3, 4}, {4}),
      pair("Add", "row on the left", {4}, {2, 3, 4}),
      pair("Add", "column and row", {3, 1}, {1, 4}),
      pair("Add", "scalar", {2, 3}, {}),
      pair("Add", "empty", {0, 3}, {3}, Smooth::zero),
      pair("Sub", "same shape", {3, 4}, {3, 4}),
      pair("Sub", "column and row", {3, 1}, {1, 4}),
      pair("Mul", "same shape", {3, 4}, {3, 4}),
      pair("Mul", "channels", {2, 3, 4}, {3, 1}),
      pair("Mul", "scalar", {2, 3}, {1, 1}),
      {"Mul", "itself", OF(x[0] * x[0]), {a}},
      {"Div", "row", OF(x[0] / x[1]), {a, uniform_tensor({4}, 6, 0.5, 2)}},
      {"Div", "of a scalar", OF(1.0 / x[0]), {away}},
      {"Div", "integers", apply("Div"), {numbers, i64({3}, {2, -3, 4})}, Smooth::no},
      {"Pow", "same shape", apply("Pow"), {away, random_tensor({3, 4}, 7)}},
      {"Pow", "constant exponent", OF(pow(x[0], 3.0)), {a}},
      {"Pow", "exponents broadcast", apply("Pow"), {away, row}},
      {"Pow", "integer exponent", apply("Pow"), {a, i64({4}, {1, 2, 3, 4})}},
      {"Pow", "integers", apply("Pow"), {numbers, i64({}, {3})}, Smooth::no},
      {"Min", "three inputs", apply("Min"), {a, row, column}},
      {"Min", "one input", apply("Min"), {row}},
      {"Max", "three inputs", apply("Max"), {a, row, column}},
      {"Max", "integers", apply("Max"), {numbers, i64({}, {1})}, Smooth::no},
      {"Sum", "three inputs", apply("Sum"), {a, row, scalar}},
      {"Mean", "three inputs", apply("Mean"), {a, row, column}},
      pair("Equal", "floating", {3, 4}, {4}, Smooth::no),
      {"Equal", "bool", apply("Equal"), {chosen, booleans({2}, {0, 1})}, Smooth::no},
      pair("Greater", "floating", {3, 4}, {4}, Smooth::no),
      pair("GreaterOrEqual", "floating", {3, 4}, {4}, Smooth::no),
      pair("Less", "floating", {3, 4}, {4}, Smooth::no),
      pair("LessOrEqual", "floating", {3, 4}, {4}, Smooth::no),
      {"And", "broadcast", apply("And"), {chosen, booleans({2}, {0, 1})}, Smooth::no},
      {"Or", "broadcast", apply("Or"), {chosen, booleans({2}, {0, 1})}, Smooth::no},
      {"Xor", "broadcast", apply("Xor"), {chosen, booleans({2}, {0, 1})}, Smooth::no},
      {"Not", "all", apply("Not"), {chosen}, Smooth::no},
      {"IsNaN", "none", apply("IsNaN"), {a}, Smooth::no},
      {"IsInf", "none", apply("IsInf"), {a}, Smooth::no},
      {"Where", "broadcast", OF(where(x[0], x[1], x[2])), {chosen, a, row}},
      {"Where", "on a comparison", OF(where(less(x[0], x[1]), x[0] * x[0], x[1])), {a, row}},
      {"Cast", "to bf16", OF(cast(x[0], ElementType::bf16)), {random_tensor({3, 4}, 63)}, Smooth::no},
      {"Cast", "to f32", OF(cast(x[0], ElementType::f32)), {a}, Smooth::no, false},
      {"Cast", "to i32", OF(cast(x[0], ElementType::i32)), {a}, Smooth::no},
      {"Cast", "from integers", OF(cast(x[0], ElementType::f64)), {numbers}, Smooth::no},
      {"CastLike", "to i64", apply("CastLike"), {a, numbers}, Smooth::no},
      {"CastLike", "to itself", apply("CastLike"), {a, row}},
  };
}

}  // namespace superstep::op::test
