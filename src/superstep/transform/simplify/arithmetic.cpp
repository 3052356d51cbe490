#include "superstep/op/elementwise/arithmetic.h"

#include "superstep/op/elementwise/unary.h"
#include "superstep/transform/simplify/rule.h"

namespace superstep::transform {
namespace {

// Input `kept`, when the other one is all `neutral` and broadcasting changes nothing.
Var without_neutral(const Site& site, std::size_t kept, double neutral) {
  const bool same_type = site.inputs[kept].type() == site.type;
  return same_type && site.is_all(1 - kept, neutral) ? site.inputs[kept] : Var();
}

Var first_valid(Var a, Var b) { return a.valid() ? a : b; }

Var add_zero(const Site& site) {
  return first_valid(without_neutral(site, 0, 0), without_neutral(site, 1, 0));
}
Var subtract_zero(const Site& site) { return without_neutral(site, 0, 0); }
Var multiply_by_one(const Site& site) {
  return first_valid(without_neutral(site, 0, 1), without_neutral(site, 1, 1));
}
Var divide_by_one(const Site& site) { return without_neutral(site, 0, 1); }

// x + (-y) and (-y) + x become x - y; x - (-y) becomes x + y.
Var add_negative(const Site& site) {
  for (std::size_t i : {1u, 0u})
    if (const Node* negation = site.made_by(site.inputs[i], "Neg"))
      return site.inputs[1 - i] - site.input_of(*negation, 0);
  return {};
}
Var subtract_negative(const Site& site) {
  const Node* negation = site.made_by(site.inputs[1], "Neg");
  return negation ? site.inputs[0] + site.input_of(*negation, 0) : Var();
}

bool is_signed(const Site& site) { return is_floating(site.type.element); }

Var multiply_by_minus_one(const Site& site) {
  for (std::size_t i : {0u, 1u})
    if (is_signed(site) && site.inputs[i].type() == site.type && site.is_all(1 - i, -1))
      return -site.inputs[i];
  return {};
}

Var power_of_one_or_two(const Site& site) {
  const Var x = site.inputs[0];
  if (x.type() != site.type) return {};
  if (site.is_all(1, 1)) return x;
  return site.is_all(1, 2) ? x * x : Var();
}

// f(f(x)) = x for a function that is its own inverse.
Var involution(const Site& site) {
  const Node* inner = site.made_by(site.inputs[0], site.node.op);
  return inner ? site.input_of(*inner, 0) : Var();
}

// f(f(x)) = f(x).
Var idempotence(const Site& site) {
  return site.made_by(site.inputs[0], site.node.op) ? site.inputs[0] : Var();
}

// Sum, Mean, Min and Max take any number of inputs.
Var only_input(const Site& site) { return site.inputs.size() == 1 ? site.inputs[0] : Var(); }
Var sum_of_two(const Site& site) {
  return site.inputs.size() == 2 ? site.inputs[0] + site.inputs[1] : only_input(site);
}

constexpr Rule rules[] = {
    {"Add", add_zero},          {"Add", add_negative},        {"Sub", subtract_zero},
    {"Sub", subtract_negative}, {"Mul", multiply_by_one},     {"Mul", multiply_by_minus_one},
    {"Div", divide_by_one},     {"Pow", power_of_one_or_two}, {"Neg", involution},
    {"Not", involution},        {"Abs", idempotence},         {"Relu", idempotence},
    {"Floor", idempotence},     {"Ceil", idempotence},        {"Round", idempotence},
    {"Sign", idempotence},      {"Sum", sum_of_two},          {"Mean", only_input},
    {"Min", only_input},        {"Max", only_input},
};

}  // namespace

std::span<const Rule> arithmetic_rules() { return rules; }

}  // namespace superstep::transform
