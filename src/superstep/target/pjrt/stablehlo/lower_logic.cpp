// Comparisons, truth values, choices and conversions.
#include <limits>

#include "superstep/target/pjrt/stablehlo/functions.h"
#include "superstep/target/pjrt/stablehlo/named.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

Values is_nan(const Site& s) { return {s.emit.compare("NE", s.in(0), s.in(0))}; }

Values is_infinite(const Site& s) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool positive = s.attributes().integer("detect_positive", 1) != 0;
  const bool negative = s.attributes().integer("detect_negative", 1) != 0;
  const Value up = s.emit.compare("EQ", s.in(0), infinity), down = s.emit.compare("EQ", s.in(0), -infinity);
  if (positive && negative) return {s.emit.binary("or", up, down)};
  if (!positive && !negative) return {s.emit.splat(ElementType::boolean, s.in(0).shape(), 0)};
  return {positive ? up : down};
}

Values where(const Site& s) {
  return {s.emit.select(s.emit.expand(s.in(0), s.out_shape()), s.emit.expand(s.in(1), s.out_shape()),
                        s.emit.expand(s.in(2), s.out_shape()))};
}

Values convert(const Site& s) { return {cast(s.emit, s.in(0), s.out().element)}; }

// A byte is true where it is not 0; true is the byte 1.
Values bit_cast(const Site& s) {
  const ElementType to = s.out().element;
  const bool truth = to == ElementType::boolean || s.in(0).element() == ElementType::boolean;
  return {truth ? cast(s.emit, s.in(0), to) : s.emit.bitcast(s.in(0), to)};
}

}  // namespace

std::span<const Lowering> logic_lowerings() {
  static const Lowering table[] = {
      {"Equal", comparison<"EQ">, Inputs::as_they_are},
      {"Greater", comparison<"GT">, Inputs::as_they_are},
      {"GreaterOrEqual", comparison<"GE">, Inputs::as_they_are},
      {"Less", comparison<"LT">, Inputs::as_they_are},
      {"LessOrEqual", comparison<"LE">, Inputs::as_they_are},
      {"And", binary<"and">},
      {"Or", binary<"or">},
      {"Xor", binary<"xor">},
      {"Not", unary<"not">},
      {"IsNaN", is_nan},
      {"IsInf", is_infinite},
      {"Where", where, Inputs::as_they_are},
      {"Cast", convert, Inputs::as_they_are},
      {"CastLike", convert, Inputs::as_they_are},
      {"BitCast", bit_cast, Inputs::as_they_are},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
