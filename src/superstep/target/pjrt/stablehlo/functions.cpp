#include "superstep/target/pjrt/stablehlo/functions.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace superstep::target::stablehlo {
namespace {

// (1 + 2 u) e^(u^2) erfc(u) for u >= 0 is smooth and goes from 1 to 2 / sqrt(pi). As a series of Chebyshev
// polynomials in t = (u - k) / (u + k) it converges fast for k = 3.75 (M. M. Shepherd and J. G. Laframboise,
// Math. Comp. 36, 249, 1981).
constexpr double chebyshev_centre = 3.75;
constexpr int terms_of_f64 = 30, terms_of_f32 = 13;
// Below this, erf is its Taylor series: nothing is subtracted from 1.
constexpr double taylor_below = 0.5;
constexpr int taylor_terms_of_f64 = 14, taylor_terms_of_f32 = 7;

long double scaled_complement(long double u) {
  if (u > 100)  // erfc would underflow: its asymptotic series, whose third term is below 2^-64 there
    return (1 + 2 * u) / (u * std::sqrt(std::numbers::pi_v<long double>)) *
           (1 - 1 / (2 * u * u) + 3 / (4 * u * u * u * u));
  return (1 + 2 * u) * std::exp(u * u) * std::erfc(u);
}

// Coefficients by the discrete orthogonality of the polynomials at their nodes.
std::vector<double> chebyshev_coefficients() {
  constexpr int nodes = 80;
  constexpr long double pi = std::numbers::pi_v<long double>;
  std::array<long double, nodes> values{};
  for (int i = 0; i < nodes; ++i) {
    const long double t = std::cos(pi * (i + 0.5L) / nodes);
    values[static_cast<std::size_t>(i)] = scaled_complement(chebyshev_centre * (1 + t) / (1 - t));
  }
  std::vector<double> coefficients;
  for (int j = 0; j < terms_of_f64; ++j) {
    long double sum = 0;
    for (int i = 0; i < nodes; ++i)
      sum += values[static_cast<std::size_t>(i)] * std::cos(pi * j * (i + 0.5L) / nodes);
    coefficients.push_back(static_cast<double>((j == 0 ? 1 : 2) * sum / nodes));
  }
  return coefficients;
}

// Clenshaw's sum.
Value chebyshev_sum(Emitter& emit, const Value& t, std::span<const double> coefficients) {
  const Value twice = emit.add(t, t);
  Value next = emit.like(t, 0), after = next;
  for (std::size_t j = coefficients.size() - 1; j > 0; --j) {
    const Value sum = emit.add(emit.subtract(emit.multiply(twice, next), after), coefficients[j]);
    after = next;
    next = sum;
  }
  return emit.add(emit.subtract(emit.multiply(t, next), after), coefficients[0]);
}

// erfc(u) of u >= 0.
Value complement_of_positive(Emitter& emit, const Value& u) {
  static const std::vector<double> coefficients = chebyshev_coefficients();
  const int terms = u.element() == ElementType::f64 ? terms_of_f64 : terms_of_f32;
  const Value t = emit.divide(emit.add(u, -chebyshev_centre), emit.add(u, chebyshev_centre));
  const Value sum = chebyshev_sum(emit, t, std::span(coefficients).first(static_cast<std::size_t>(terms)));
  const Value decay = emit.unary("exponential", emit.negate(emit.multiply(u, u)));
  return emit.divide(emit.multiply(decay, sum), emit.add(emit.multiply(u, 2), 1));
}

// erf(x) = 2 / sqrt(pi) sum (-1)^n x^(2n + 1) / (n! (2n + 1)).
Value taylor(Emitter& emit, const Value& x) {
  const int terms = x.element() == ElementType::f64 ? taylor_terms_of_f64 : taylor_terms_of_f32;
  const Value square = emit.multiply(x, x);
  double factorial = std::tgamma(terms);
  const auto coefficient = [&](int n) {
    return 2 * std::numbers::inv_sqrtpi * (n % 2 ? -1 : 1) / (factorial * (2 * n + 1));
  };
  Value sum = emit.like(x, coefficient(terms - 1));
  for (int n = terms - 2; n >= 0; --n) {
    factorial /= n + 1;
    sum = emit.add(emit.multiply(sum, square), coefficient(n));
  }
  return emit.multiply(x, sum);
}

// `x` is at most the largest integer: where a float cannot hold that, the comparison finds it.
Value to_integer(Emitter& emit, const Value& x, ElementType to) {
  const Tensor low = neutral(Fold::largest, to), high = neutral(Fold::smallest, to);
  const Shape& shape = x.shape();
  const Value none = emit.splat(to, shape, 0);
  const Value least = emit.broadcast(emit.constant(low), shape, {}),
              most = emit.broadcast(emit.constant(high), shape, {});
  const Value inside = emit.convert(x, to);
  const Value below = emit.compare("LE", x, low.at(0)), above = emit.compare("GE", x, high.at(0));
  const Value limited = emit.select(above, most, emit.select(below, least, inside));
  return emit.select(emit.compare("NE", x, x), none, limited);
}

}  // namespace

Value sigmoid(Emitter& emit, const Value& x) { return emit.unary("logistic", x); }

Value softplus(Emitter& emit, const Value& x) {
  const Value decay = emit.unary("exponential", emit.negate(emit.unary("abs", x)));
  return emit.add(emit.maximum(x, emit.like(x, 0)), emit.unary("log_plus_one", decay));
}

Value erf(Emitter& emit, const Value& x) {
  const Value size = emit.unary("abs", x);
  const Value outer = emit.multiply(emit.unary("sign", x),
                                    emit.subtract(emit.like(x, 1), complement_of_positive(emit, size)));
  return emit.select(emit.compare("LT", size, taylor_below), taylor(emit, x), outer);
}

Value erfc(Emitter& emit, const Value& x) {
  const Value size = emit.unary("abs", x), one = emit.like(x, 1);
  const Value positive = complement_of_positive(emit, size);
  const Value outer =
      emit.select(emit.compare("LT", x, 0), emit.subtract(emit.like(x, 2), positive), positive);
  return emit.select(emit.compare("LT", size, taylor_below), emit.subtract(one, taylor(emit, x)), outer);
}

Value cast(Emitter& emit, const Value& x, ElementType to) {
  if (x.element() == to) return x;
  if (to == ElementType::boolean) return emit.compare("NE", x, 0);
  if (is_floating(x.element()) && is_integer(to)) {
    const bool narrow = size_in_bytes(x.element()) < 4;  // limits of integers are beyond f16
    return to_integer(emit, narrow ? emit.convert(x, ElementType::f32) : x, to);
  }
  return emit.convert(x, to);
}

}  // namespace superstep::target::stablehlo
