#include "superstep/op/elementwise/cast.h"

#include "superstep/transform/simplify/rule.h"

namespace superstep::transform {
namespace {

struct Widths {
  int exponent, digits;  // bits of a floating type's exponent and significand; integers: 0 and their bits
  bool is_signed;
};

Widths widths_of(ElementType type) {
  const int bits = static_cast<int>(size_in_bytes(type)) * 8;
  switch (type) {
    case ElementType::f64: return {11, 53, true};
    case ElementType::f32: return {8, 24, true};
    case ElementType::f16: return {5, 11, true};
    case ElementType::bf16: return {8, 8, true};
    case ElementType::boolean: return {0, 1, false};
    case ElementType::i64:
    case ElementType::i32:
    case ElementType::i16:
    case ElementType::i8: return {0, bits - 1, true};
    default: return {0, bits, false};
  }
}

// Does every value of `from` have the same value in `to`?
bool is_exact(ElementType from, ElementType to) {
  if (from == to) return true;
  if (to == ElementType::boolean) return false;
  const Widths a = widths_of(from), b = widths_of(to);
  if (is_floating(from)) return b.exponent >= a.exponent && b.digits >= a.digits;
  if (is_floating(to)) return b.digits >= a.digits && to != ElementType::f16;
  return b.digits >= a.digits && (b.is_signed || !a.is_signed);
}

Var drop_cast(const Site& site) { return site.inputs[0].type() == site.type ? site.inputs[0] : Var(); }

// A detour over a type that holds every value of the source changes nothing.
Var skip_exact_cast(const Site& site) {
  const Node* inner = site.made_by(site.inputs[0], "Cast");
  if (!inner) return {};
  const Var source = site.input_of(*inner, 0);
  if (!is_exact(source.element(), site.inputs[0].element())) return {};
  return op::cast(source, site.type.element);
}

constexpr Rule rules[] = {{"Cast", drop_cast}, {"Cast", skip_exact_cast}};

}  // namespace

std::span<const Rule> cast_rules() { return rules; }

}  // namespace superstep::transform
