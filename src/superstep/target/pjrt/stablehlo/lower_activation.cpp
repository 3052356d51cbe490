// Activations, and Clip and PRelu, whose parameters are inputs.
#include <cmath>
#include <numbers>

#include "superstep/target/pjrt/stablehlo/functions.h"
#include "superstep/target/pjrt/stablehlo/named.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

double number(const Site& s, std::string_view name, double otherwise) {
  return s.attributes().number(name, otherwise);
}

Values relu(const Site& s) { return {s.emit.maximum(s.in(0), s.emit.like(s.in(0), 0))}; }

// x where it is positive, else what is given.
Value positive_or(const Site& s, const Value& x, const Value& otherwise) {
  return s.emit.select(s.emit.compare("GT", x, 0), x, otherwise);
}

Values leaky_relu(const Site& s) {
  const Value x = s.in(0);
  const Value scaled = s.emit.multiply(x, number(s, "alpha", 0.01));
  return {s.emit.select(s.emit.compare("LT", x, 0), scaled, x)};
}

Values logistic(const Site& s) { return {sigmoid(s.emit, s.in(0))}; }
Values soft_plus(const Site& s) { return {softplus(s.emit, s.in(0))}; }
Values softsign(const Site& s) {
  return {s.emit.divide(s.in(0), s.emit.add(s.emit.unary("abs", s.in(0)), 1))};
}

Values elu(const Site& s) {
  const Value raised = s.emit.unary("exponential_minus_one", s.in(0));
  return {positive_or(s, s.in(0), s.emit.multiply(raised, number(s, "alpha", 1)))};
}

Values selu(const Site& s) {
  const double alpha = number(s, "alpha", 1.67326319217681884765625);
  const double gamma = number(s, "gamma", 1.05070102214813232421875);
  const Value raised = s.emit.unary("exponential_minus_one", s.in(0));
  return {s.emit.multiply(positive_or(s, s.in(0), s.emit.multiply(raised, alpha)), gamma)};
}

Values celu(const Site& s) {
  const Value alpha = s.emit.like(s.in(0), number(s, "alpha", 1));
  const Value raised = s.emit.unary("exponential_minus_one", s.emit.divide(s.in(0), alpha));
  return {positive_or(s, s.in(0), s.emit.multiply(raised, alpha))};
}

Value between(const Site& s, const Value& x, double low, double high) {
  return s.emit.maximum(s.emit.like(x, low), s.emit.minimum(s.emit.like(x, high), x));
}

Values hard_sigmoid(const Site& s) {
  const Value line = s.emit.add(s.emit.multiply(s.in(0), number(s, "alpha", 0.2)), number(s, "beta", 0.5));
  return {between(s, line, 0, 1)};
}

Values hard_swish(const Site& s) {
  const Value x = s.in(0);
  return {s.emit.multiply(x, between(s, s.emit.add(s.emit.divide(x, s.emit.like(x, 6)), 0.5), 0, 1))};
}

Values gelu(const Site& s) {
  const Value x = s.in(0), half = s.emit.multiply(x, 0.5);
  if (s.attributes().text("approximate", "none") != "tanh")
    return {s.emit.multiply(half, erfc(s.emit, s.emit.multiply(x, -1 / std::numbers::sqrt2)))};
  const Value cube = s.emit.multiply(s.emit.multiply(x, x), x);
  const Value inner = s.emit.add(x, s.emit.multiply(cube, 0.044715));
  const double root = std::sqrt(2 * std::numbers::inv_pi);
  return {s.emit.multiply(half, s.emit.add(s.emit.unary("tanh", s.emit.multiply(inner, root)), 1))};
}

Values mish(const Site& s) {
  return {s.emit.multiply(s.in(0), s.emit.unary("tanh", softplus(s.emit, s.in(0))))};
}

Values swish(const Site& s) {
  const double alpha = number(s, "alpha", 1);
  const Value scaled = alpha == 1 ? s.in(0) : s.emit.multiply(s.in(0), alpha);
  return {s.emit.multiply(s.in(0), sigmoid(s.emit, scaled))};
}

Values thresholded_relu(const Site& s) {
  const Value x = s.in(0);
  return {s.emit.select(s.emit.compare("GT", x, number(s, "alpha", 1)), x, s.emit.like(x, 0))};
}

// Of integers in f64: the bias need not be whole.
Values shrink(const Site& s) {
  const bool floating = is_floating(s.in(0).element());
  const Value x = floating ? s.in(0) : s.emit.convert(s.in(0), ElementType::f64);
  const double bias = number(s, "bias", 0), lambd = number(s, "lambd", 0.5);
  const Value inner = s.emit.select(s.emit.compare("GT", x, lambd), s.emit.add(x, -bias), s.emit.like(x, 0));
  const Value result = s.emit.select(s.emit.compare("LT", x, -lambd), s.emit.add(x, bias), inner);
  return {cast(s.emit, result, s.in(0).element())};
}

Values clip(const Site& s) {
  Value x = s.in(0);
  const auto limit = [&](std::size_t i) {
    return s.emit.broadcast(s.emit.reshape(s.in(i), Shape{}), x.shape(), {});
  };
  if (s.has(1)) {
    const Value low = limit(1);
    x = s.emit.select(s.emit.compare("LT", x, low), low, x);
  }
  if (s.has(2)) {
    const Value high = limit(2);
    x = s.emit.select(s.emit.compare("GT", x, high), high, x);
  }
  return {x};
}

Values prelu(const Site& s) {
  const auto [x, slope] = both(s);
  return {s.emit.select(s.emit.compare("LT", x, 0), s.emit.multiply(x, slope), x)};
}

}  // namespace

std::span<const Lowering> activation_lowerings() {
  static const Lowering table[] = {
      {"Relu", relu},
      {"LeakyRelu", leaky_relu},
      {"Sigmoid", logistic},
      {"Tanh", unary<"tanh">},
      {"Softplus", soft_plus},
      {"Softsign", softsign},
      {"Elu", elu},
      {"Selu", selu},
      {"Celu", celu},
      {"HardSigmoid", hard_sigmoid},
      {"HardSwish", hard_swish},
      {"Gelu", gelu},
      {"Mish", mish},
      {"Swish", swish},
      {"ThresholdedRelu", thresholded_relu},
      {"Shrink", shrink},
      {"Clip", clip},
      {"PRelu", prelu},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
