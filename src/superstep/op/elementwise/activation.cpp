#include "superstep/op/elementwise/activation.h"

#include <cmath>
#include <numbers>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/elementwise/unary_rule.h"

namespace superstep::op {
namespace {

Var is_positive(Var x) { return greater(x, constant_like(x, 0)); }
Var zero_like(Var x) { return constant_like(x, 0); }
double sigmoid_of(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

struct Relu : NumericRule {
  using NumericRule::NumericRule;
  static constexpr std::string_view name = "Relu";
  static constexpr int opset = 14;
  static constexpr Traits traits =
      elementwise_traits(Elements::numeric, {.f32_since = 13, .precision = Precision::follows});
  template <class W>
  W operator()(W x) const {
    return x < W{} ? W{} : x;
  }
  Var times_derivative(Var, Var y, Var t) const { return where(is_positive(y), t, zero_like(t)); }
};

struct LeakyRelu : FloatingRule {
  static constexpr std::string_view name = "LeakyRelu";
  static constexpr int opset = 16;
  static constexpr Traits traits = elementwise_traits(
      Elements::floating, {.attributes = "alpha", .f32_since = 13, .precision = Precision::follows});
  double alpha;
  explicit LeakyRelu(const Attributes& attributes) : alpha(attributes.number("alpha", 0.01)) {}
  double operator()(double x) const { return x < 0 ? alpha * x : x; }
  // A positive slope keeps the sign, and the output is what a backward pass has at hand.
  Var times_derivative(Var x, Var y, Var t) const {
    return where(is_positive(alpha > 0 ? y : x), t, t * alpha);
  }
};

struct Sigmoid : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Sigmoid";
  static constexpr int opset = 13;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::function});
  double operator()(double x) const { return sigmoid_of(x); }
  Var times_derivative(Var, Var y, Var t) const { return t * (y * (1.0 - y)); }
};

struct Tanh : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Tanh";
  static constexpr int opset = 13;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::function});
  double operator()(double x) const { return std::tanh(x); }
  Var times_derivative(Var, Var y, Var t) const { return t * (1.0 - y * y); }
};

struct Softplus : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Softplus";
  static constexpr int opset = 1;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::functions});
  double operator()(double x) const { return softplus_of(x); }
  Var times_derivative(Var x, Var, Var t) const { return t * sigmoid(x); }
};

struct Softsign : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Softsign";
  static constexpr int opset = 1;
  double operator()(double x) const { return x / (1.0 + std::abs(x)); }
  Var times_derivative(Var x, Var, Var t) const {
    const Var denominator = abs(x) + 1.0;
    return t / (denominator * denominator);
  }
};

struct Elu : FloatingRule {
  static constexpr std::string_view name = "Elu";
  static constexpr int opset = 6;
  static constexpr Traits traits =
      elementwise_traits(Elements::floating, {.attributes = "alpha", .effort = Effort::functions});
  double alpha;
  explicit Elu(const Attributes& attributes) : alpha(attributes.number("alpha", 1.0)) {}
  double operator()(double x) const { return x > 0 ? x : alpha * std::expm1(x); }
  Var times_derivative(Var x, Var y, Var t) const { return where(is_positive(x), t, t * (y + alpha)); }
};

struct Selu : FloatingRule {
  static constexpr std::string_view name = "Selu";
  static constexpr int opset = 6;
  static constexpr Traits traits =
      elementwise_traits(Elements::floating, {.attributes = "alpha gamma", .effort = Effort::functions});
  double alpha, gamma;
  explicit Selu(const Attributes& attributes)
      : alpha(attributes.number("alpha", 1.67326319217681884765625)),
        gamma(attributes.number("gamma", 1.05070102214813232421875)) {}
  double operator()(double x) const { return gamma * (x > 0 ? x : alpha * std::expm1(x)); }
  Var times_derivative(Var x, Var y, Var t) const {
    return where(is_positive(x), t * gamma, t * (y + alpha * gamma));
  }
};

struct Celu : FloatingRule {
  static constexpr std::string_view name = "Celu";
  static constexpr int opset = 12;
  static constexpr Traits traits =
      elementwise_traits(Elements::floating, {.attributes = "alpha", .effort = Effort::functions});
  double alpha;
  explicit Celu(const Attributes& attributes) : alpha(attributes.number("alpha", 1.0)) {}
  double operator()(double x) const { return x > 0 ? x : alpha * std::expm1(x / alpha); }
  Var times_derivative(Var x, Var y, Var t) const { return where(is_positive(x), t, t * (y / alpha + 1.0)); }
};

// Between 0 and 1; NaN stays what it is.
double limited(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

struct HardSigmoid : FloatingRule {
  static constexpr std::string_view name = "HardSigmoid";
  static constexpr int opset = 6;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.attributes = "alpha beta"});
  double alpha, beta;
  explicit HardSigmoid(const Attributes& attributes)
      : alpha(attributes.number("alpha", 0.2)), beta(attributes.number("beta", 0.5)) {}
  double operator()(double x) const { return limited(alpha * x + beta); }
  Var times_derivative(Var, Var y, Var t) const {
    const Var inside = logical_and(is_positive(y), less(y, constant_like(y, 1)));
    return where(inside, t * alpha, zero_like(t));
  }
};

struct HardSwish : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "HardSwish";
  static constexpr int opset = 14;
  double operator()(double x) const { return x * limited(x / 6.0 + 0.5); }
  Var times_derivative(Var x, Var, Var t) const {
    const Var slope = where(less(x, constant_like(x, 3)), x / 3.0 + 0.5, constant_like(x, 1));
    return where(greater(x, constant_like(x, -3)), t * slope, zero_like(t));
  }
};

struct Gelu : FloatingRule {
  static constexpr std::string_view name = "Gelu";
  static constexpr int opset = 20;
  static constexpr Traits traits =
      elementwise_traits(Elements::floating, {.attributes = "approximate", .effort = Effort::functions});
  static constexpr double cubic = 0.044715;
  static inline const double root = std::sqrt(2.0 * std::numbers::inv_pi);  // sqrt(2 / pi)
  bool approximate;
  explicit Gelu(const Attributes& attributes)
      : approximate(attributes.text("approximate", "none") == "tanh") {}
  double operator()(double x) const {
    if (approximate) return 0.5 * x * (1.0 + std::tanh(root * (x + cubic * x * x * x)));
    return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
  }
  // d/dx x Phi(x) = Phi(x) + x phi(x).
  Var times_derivative(Var x, Var, Var t) const {
    if (approximate) return t * approximate_derivative(x);
    const Var distribution = erf(x / std::numbers::sqrt2) * 0.5 + 0.5;
    const Var density = exp(x * x * -0.5) * (0.5 * root);
    return t * (distribution + x * density);
  }
  static Var approximate_derivative(Var x) {
    const Var h = tanh((x + x * x * x * cubic) * root);
    const Var slope = (x * x * (3.0 * cubic) + 1.0) * root;
    return (h + 1.0) * 0.5 + x * 0.5 * (1.0 - h * h) * slope;
  }
};

struct Mish : FloatingRule {
  using FloatingRule::FloatingRule;
  static constexpr std::string_view name = "Mish";
  static constexpr int opset = 18;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.effort = Effort::functions});
  double operator()(double x) const { return x * std::tanh(softplus_of(x)); }
  Var times_derivative(Var x, Var, Var t) const {
    const Var h = tanh(softplus(x));
    return t * (h + x * sigmoid(x) * (1.0 - h * h));
  }
};

struct Swish : FloatingRule {
  static constexpr std::string_view name = "Swish";
  static constexpr int opset = 24;
  static constexpr Traits traits =
      elementwise_traits(Elements::floating, {.attributes = "alpha", .effort = Effort::functions});
  double alpha;
  explicit Swish(const Attributes& attributes) : alpha(attributes.number("alpha", 1.0)) {}
  double operator()(double x) const { return x * sigmoid_of(alpha * x); }
  Var times_derivative(Var x, Var y, Var t) const {
    const Var s = sigmoid(x * alpha);
    return t * (s + y * (1.0 - s) * alpha);
  }
};

struct ThresholdedRelu : FloatingRule {
  static constexpr std::string_view name = "ThresholdedRelu";
  static constexpr int opset = 10;
  static constexpr Traits traits = elementwise_traits(Elements::floating, {.attributes = "alpha"});
  double alpha;
  explicit ThresholdedRelu(const Attributes& attributes) : alpha(attributes.number("alpha", 1.0)) {}
  double operator()(double x) const { return x > alpha ? x : 0.0; }
  Var times_derivative(Var x, Var, Var t) const {
    return where(greater(x, constant_like(x, alpha)), t, zero_like(t));
  }
};

struct Shrink : NumericRule {
  static constexpr std::string_view name = "Shrink";
  static constexpr int opset = 9;
  static constexpr Traits traits = elementwise_traits(Elements::numeric, {.attributes = "bias lambd"});
  double bias, lambd;
  explicit Shrink(const Attributes& attributes)
      : bias(attributes.number("bias", 0.0)), lambd(attributes.number("lambd", 0.5)) {}
  template <class W>
  W operator()(W value) const {
    const auto x = static_cast<double>(value);
    return static_cast<W>(x < -lambd ? x + bias : x > lambd ? x - bias : 0.0);
  }
  Var times_derivative(Var x, Var, Var t) const {
    return where(greater(abs(x), constant_like(x, lambd)), t, zero_like(t));
  }
};

Var apply(std::string_view op, Var x, Attributes attributes = {}) {
  return x.builder().node1(op, {x}, std::move(attributes));
}

}  // namespace

Var relu(Var x) { return apply("Relu", x); }
Var leaky_relu(Var x, double alpha) { return apply("LeakyRelu", x, {{"alpha", alpha}}); }
Var sigmoid(Var x) { return apply("Sigmoid", x); }
Var tanh(Var x) { return apply("Tanh", x); }
Var softplus(Var x) { return apply("Softplus", x); }
Var softsign(Var x) { return apply("Softsign", x); }
Var elu(Var x, double alpha) { return apply("Elu", x, {{"alpha", alpha}}); }
Var selu(Var x, double alpha, double gamma) { return apply("Selu", x, {{"alpha", alpha}, {"gamma", gamma}}); }
Var celu(Var x, double alpha) { return apply("Celu", x, {{"alpha", alpha}}); }
Var hard_sigmoid(Var x, double alpha, double beta) {
  return apply("HardSigmoid", x, {{"alpha", alpha}, {"beta", beta}});
}
Var hard_swish(Var x) { return apply("HardSwish", x); }
Var gelu(Var x, bool tanh_approximation) {
  return apply("Gelu", x, {{"approximate", std::string(tanh_approximation ? "tanh" : "none")}});
}
Var mish(Var x) { return apply("Mish", x); }
Var swish(Var x, double alpha) { return apply("Swish", x, {{"alpha", alpha}}); }
Var thresholded_relu(Var x, double alpha) { return apply("ThresholdedRelu", x, {{"alpha", alpha}}); }
Var shrink(Var x, double bias, double lambd) {
  return apply("Shrink", x, {{"bias", bias}, {"lambd", lambd}});
}

std::span<const Definition> activation_operators() {
  static const Definition definitions[] = {
      unary_definition<Relu>(),        unary_definition<LeakyRelu>(), unary_definition<Sigmoid>(),
      unary_definition<Tanh>(),        unary_definition<Softplus>(),  unary_definition<Softsign>(),
      unary_definition<Elu>(),         unary_definition<Selu>(),      unary_definition<Celu>(),
      unary_definition<HardSigmoid>(), unary_definition<HardSwish>(), unary_definition<Gelu>(),
      unary_definition<Mish>(),        unary_definition<Swish>(),     unary_definition<ThresholdedRelu>(),
      unary_definition<Shrink>(),
  };
  return definitions;
}

}  // namespace superstep::op
