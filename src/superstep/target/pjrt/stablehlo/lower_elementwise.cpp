// Arithmetic, roots, logarithms, trigonometry, bits.
#include <algorithm>

#include "superstep/target/pjrt/stablehlo/functions.h"
#include "superstep/target/pjrt/stablehlo/named.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

bool is_unsigned(ElementType element) { return element >= ElementType::u64; }

Values abs(const Site& s) {
  return {is_unsigned(s.in(0).element()) ? s.in(0) : s.emit.unary("abs", s.in(0))};
}

Values sign(const Site& s) {
  if (!is_unsigned(s.in(0).element())) return {s.emit.unary("sign", s.in(0))};
  return {s.emit.convert(s.emit.compare("NE", s.in(0), 0), s.in(0).element())};
}

Values reciprocal(const Site& s) { return {s.emit.divide(s.emit.like(s.in(0), 1), s.in(0))}; }
Values error_function(const Site& s) { return {erf(s.emit, s.in(0))}; }
Values identity(const Site& s) { return {s.in(0)}; }

// Of integers: by 0 gives 0.
Values divide(const Site& s) {
  const auto [a, b] = both(s);
  if (is_floating(a.element())) return {s.emit.divide(a, b)};
  const Value zero = s.emit.compare("EQ", b, 0);
  const Value quotient = s.emit.divide(a, s.emit.select(zero, s.emit.like(b, 1), b));
  return {s.emit.select(zero, s.emit.like(a, 0), quotient)};
}

Values integer_power(const Site& s, const Value& base, const Value& exponent) {
  const Value none = s.emit.like(base, 0), one = s.emit.like(base, 1);
  const Value power = s.emit.binary("power", base, s.emit.maximum(exponent, none));
  if (is_unsigned(base.element())) return {power};
  const Value inverse = s.emit.select(s.emit.compare("EQ", base, one), one, none);
  return {s.emit.select(s.emit.compare("LT", exponent, 0), inverse, power)};
}

// The one exponent, where all are the same and known; 0 elsewhere.
double whole_exponent(const Site& s) {
  const Tensor* const known = s.known(1);
  return known && known->element_count() == 1 ? known->at(0) : 0;
}

Values power(const Site& s) {
  const auto [base, exponent] = both(s);
  const bool floating = is_floating(base.element());
  if (!floating && !is_floating(exponent.element()))
    return integer_power(s, base, s.emit.convert(exponent, base.element()));
  if (!floating) {
    const Value wide = s.emit.convert(base, ElementType::f64);
    const Value result = s.emit.binary("power", wide, s.emit.convert(exponent, ElementType::f64));
    return {cast(s.emit, result, base.element())};
  }
  if (whole_exponent(s) == 2) return {s.emit.multiply(base, base)};
  const ElementType wider = exponent.element() == ElementType::f64 ? ElementType::f64 : base.element();
  return {s.emit.binary("power", s.emit.convert(base, wider), s.emit.convert(exponent, wider))};
}

Value folded(const Site& s, Fold fold) {
  Value total = s.emit.expand(s.in(0), s.out_shape());
  for (std::size_t i = 1; i < s.inputs.size(); ++i)
    total = s.emit.fold(fold, total, s.emit.expand(s.in(i), s.out_shape()));
  return total;
}
Values smallest(const Site& s) { return {folded(s, Fold::smallest)}; }
Values largest(const Site& s) { return {folded(s, Fold::largest)}; }
Values sum(const Site& s) { return {folded(s, Fold::sum)}; }

Values mean(const Site& s) {
  const Value total = folded(s, Fold::sum);
  const double share = 1.0 / static_cast<double>(s.inputs.size());
  if (is_floating(total.element())) return {s.emit.multiply(total, share)};
  return {cast(s.emit, s.emit.multiply(s.emit.convert(total, ElementType::f64), share), total.element())};
}

// --- trigonometry: StableHLO has sine, cosine, arc tangent of a quotient and hyperbolic tangent

Values tangent(const Site& s) {
  return {s.emit.divide(s.emit.unary("sine", s.in(0)), s.emit.unary("cosine", s.in(0)))};
}

// sqrt(1 - x^2), as a product that does not cancel near 1.
Value other_leg(const Site& s, const Value& x) {
  const Value one = s.emit.like(x, 1);
  return s.emit.unary("sqrt", s.emit.multiply(s.emit.subtract(one, x), s.emit.add(one, x)));
}
Values arc_sine(const Site& s) { return {s.emit.binary("atan2", s.in(0), other_leg(s, s.in(0)))}; }
Values arc_cosine(const Site& s) { return {s.emit.binary("atan2", other_leg(s, s.in(0)), s.in(0))}; }
Values arc_tangent(const Site& s) { return {s.emit.binary("atan2", s.in(0), s.emit.like(s.in(0), 1))}; }

// (e + e / (e + 1)) / 2 with e = e^|x| - 1; a large x is halved before it is raised.
Values hyperbolic_sine(const Site& s) {
  const Value x = s.in(0), size = s.emit.unary("abs", x);
  const Value e = s.emit.unary("exponential_minus_one", size);
  const Value near = s.emit.multiply(s.emit.add(e, s.emit.divide(e, s.emit.add(e, 1))), 0.5);
  const Value root = s.emit.unary("exponential", s.emit.multiply(size, 0.5));
  const Value far = s.emit.multiply(s.emit.multiply(root, 0.5), root);
  const Value large = s.emit.compare("GT", size, 30);
  return {s.emit.multiply(s.emit.unary("sign", x), s.emit.select(large, far, near))};
}
Values hyperbolic_cosine(const Site& s) {
  const Value half = s.emit.multiply(s.emit.unary("abs", s.in(0)), 0.5);
  const Value root = s.emit.unary("exponential", half);
  const Value up = s.emit.multiply(s.emit.multiply(root, 0.5), root);
  const Value down = s.emit.divide(s.emit.divide(s.emit.like(root, 0.5), root), root);
  return {s.emit.add(up, down)};
}

// log1p(a + a^2 / (1 + sqrt(a^2 + 1))) of a = |x|; log(2 a) where the square would overflow.
Values area_sine(const Site& s) {
  const Value x = s.in(0), a = s.emit.unary("abs", x), square = s.emit.multiply(a, a);
  const Value root = s.emit.unary("sqrt", s.emit.add(square, 1));
  const Value near = s.emit.unary("log_plus_one", s.emit.add(a, s.emit.divide(square, s.emit.add(root, 1))));
  const Value far = s.emit.add(s.emit.unary("log", a), 0.69314718055994530942);
  return {s.emit.multiply(s.emit.unary("sign", x), s.emit.select(s.emit.compare("GT", a, 1e9), far, near))};
}
// log1p(t + sqrt(2 t + t^2)) of t = x - 1.
Values area_cosine(const Site& s) {
  const Value x = s.in(0), t = s.emit.add(x, -1);
  const Value root = s.emit.unary("sqrt", s.emit.add(s.emit.add(t, t), s.emit.multiply(t, t)));
  const Value near = s.emit.unary("log_plus_one", s.emit.add(t, root));
  const Value far = s.emit.add(s.emit.unary("log", x), 0.69314718055994530942);
  return {s.emit.select(s.emit.compare("GT", x, 1e9), far, near)};
}
// log1p(2 a / (1 - a)) / 2 of a = |x|.
Values area_tangent(const Site& s) {
  const Value x = s.in(0), a = s.emit.unary("abs", x);
  const Value ratio = s.emit.divide(s.emit.add(a, a), s.emit.subtract(s.emit.like(a, 1), a));
  return {
      s.emit.multiply(s.emit.unary("sign", x), s.emit.multiply(s.emit.unary("log_plus_one", ratio), 0.5))};
}

// --- whole numbers

// The remainder with the dividend's sign, or with the divisor's; of integers by 0 it is 0.
Values modulo(const Site& s) {
  const auto [a, b] = both(s);
  const bool like_fmod = s.attributes().integer("fmod", 0) != 0, floating = is_floating(a.element());
  const Value none = s.emit.like(a, 0), zero = s.emit.compare("EQ", b, none);
  const Value divisor = floating ? b : s.emit.select(zero, s.emit.like(b, 1), b);
  const Value rest = s.emit.binary("remainder", a, divisor);
  if (like_fmod || is_unsigned(a.element())) return {floating ? rest : s.emit.select(zero, none, rest)};
  const Value other_sign =
      s.emit.binary("xor", s.emit.compare("LT", rest, none), s.emit.compare("LT", b, none));
  const Value moves = s.emit.binary("and", other_sign, s.emit.compare("NE", rest, none));
  const Value moved = s.emit.select(moves, s.emit.add(rest, b), rest);
  return {floating ? moved : s.emit.select(zero, none, moved)};
}

// Shifts by all bits or more, or by a negative number, leave copies of the sign: as StableHLO has it.
Values shift(const Site& s) {
  const auto [a, b] = both(s);
  if (s.attributes().text("direction") == "LEFT") return {s.emit.binary("shift_left", a, b)};
  return {s.emit.binary(is_unsigned(a.element()) ? "shift_right_logical" : "shift_right_arithmetic", a, b)};
}

}  // namespace

std::span<const Lowering> elementwise_lowerings() {
  static const Lowering table[] = {
      {"Neg", unary<"negate">},
      {"Abs", abs},
      {"Sign", sign},
      {"Exp", unary<"exponential">},
      {"Log", unary<"log">},
      {"Sqrt", unary<"sqrt">},
      {"Reciprocal", reciprocal},
      {"Erf", error_function},
      {"Floor", unary<"floor">},
      {"Ceil", unary<"ceil">},
      {"Round", unary<"round_nearest_even">},
      {"Identity", identity, Inputs::as_they_are},
      {"Add", binary<"add">},
      {"Sub", binary<"subtract">},
      {"Mul", binary<"multiply">},
      {"Div", divide},
      {"Pow", power},
      {"Min", smallest},
      {"Max", largest},
      {"Sum", sum},
      {"Mean", mean},
      {"Sin", unary<"sine">},
      {"Cos", unary<"cosine">},
      {"Tan", tangent},
      {"Asin", arc_sine},
      {"Acos", arc_cosine},
      {"Atan", arc_tangent},
      {"Sinh", hyperbolic_sine},
      {"Cosh", hyperbolic_cosine},
      {"Asinh", area_sine},
      {"Acosh", area_cosine},
      {"Atanh", area_tangent},
      {"Mod", modulo},
      {"BitShift", shift},
      {"BitwiseAnd", binary<"and">},
      {"BitwiseOr", binary<"or">},
      {"BitwiseXor", binary<"xor">},
      {"BitwiseNot", unary<"not">},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
