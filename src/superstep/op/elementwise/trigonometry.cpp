#include "superstep/op/elementwise/trigonometry.h"

#include <cmath>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/elementwise/unary_rule.h"

namespace superstep::op {
namespace {

struct Sin : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Sin";
  static constexpr int opset = 7;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::functions});
  double operator()(double x) const { return std::sin(x); }
  Var times_derivative(Var x, Var, Var t) const { return t * cos(x); }
};

struct Cos : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Cos";
  static constexpr int opset = 7;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::functions});
  double operator()(double x) const { return std::cos(x); }
  Var times_derivative(Var x, Var, Var t) const { return -(t * sin(x)); }
};

struct Tan : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Tan";
  static constexpr int opset = 7;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::functions});
  double operator()(double x) const { return std::tan(x); }
  Var times_derivative(Var, Var y, Var t) const { return t * (y * y + 1.0); }
};

struct Asin : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Asin";
  static constexpr int opset = 7;
  double operator()(double x) const { return std::asin(x); }
  Var times_derivative(Var x, Var, Var t) const { return t / sqrt(1.0 - x * x); }
};

struct Acos : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Acos";
  static constexpr int opset = 7;
  double operator()(double x) const { return std::acos(x); }
  Var times_derivative(Var x, Var, Var t) const { return -(t / sqrt(1.0 - x * x)); }
};

struct Atan : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Atan";
  static constexpr int opset = 7;
  double operator()(double x) const { return std::atan(x); }
  Var times_derivative(Var x, Var, Var t) const { return t / (x * x + 1.0); }
};

struct Sinh : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Sinh";
  static constexpr int opset = 9;
  double operator()(double x) const { return std::sinh(x); }
  Var times_derivative(Var x, Var, Var t) const { return t * cosh(x); }
};

struct Cosh : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Cosh";
  static constexpr int opset = 9;
  double operator()(double x) const { return std::cosh(x); }
  Var times_derivative(Var x, Var, Var t) const { return t * sinh(x); }
};

struct Asinh : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Asinh";
  static constexpr int opset = 9;
  double operator()(double x) const { return std::asinh(x); }
  Var times_derivative(Var x, Var, Var t) const { return t / sqrt(x * x + 1.0); }
};

struct Acosh : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Acosh";
  static constexpr int opset = 9;
  double operator()(double x) const { return std::acosh(x); }
  Var times_derivative(Var x, Var, Var t) const { return t / sqrt(x * x - 1.0); }
};

struct Atanh : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Atanh";
  static constexpr int opset = 9;
  double operator()(double x) const { return std::atanh(x); }
  Var times_derivative(Var x, Var, Var t) const { return t / (1.0 - x * x); }
};

}  // namespace

Var sin(Var x) { return x.builder().node1("Sin", {x}); }
Var cos(Var x) { return x.builder().node1("Cos", {x}); }
Var tan(Var x) { return x.builder().node1("Tan", {x}); }
Var asin(Var x) { return x.builder().node1("Asin", {x}); }
Var acos(Var x) { return x.builder().node1("Acos", {x}); }
Var atan(Var x) { return x.builder().node1("Atan", {x}); }
Var sinh(Var x) { return x.builder().node1("Sinh", {x}); }
Var cosh(Var x) { return x.builder().node1("Cosh", {x}); }
Var asinh(Var x) { return x.builder().node1("Asinh", {x}); }
Var acosh(Var x) { return x.builder().node1("Acosh", {x}); }
Var atanh(Var x) { return x.builder().node1("Atanh", {x}); }

std::span<const Definition> trigonometric_operators() {
  static const Definition definitions[] = {
      unary_definition<Sin>(),   unary_definition<Cos>(),   unary_definition<Tan>(),
      unary_definition<Asin>(),  unary_definition<Acos>(),  unary_definition<Atan>(),
      unary_definition<Sinh>(),  unary_definition<Cosh>(),  unary_definition<Asinh>(),
      unary_definition<Acosh>(), unary_definition<Atanh>(),
  };
  return definitions;
}

}  // namespace superstep::op
