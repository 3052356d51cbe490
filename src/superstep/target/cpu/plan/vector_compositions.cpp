#include "superstep/target/cpu/plan/vector_compositions.h"

#include <cmath>
#include <limits>

namespace superstep::target::cpu {

using graph::Attributes;
using kernels::Activation;
using kernels::VectorOp;
using kernels::VectorProgram;
using Value = ComposedValue;

namespace {

Value constant(VectorProgram& p, double value) { return p.constant(static_cast<float>(value)); }
Value number(VectorProgram& p, const Attributes& attributes, const char* name, double otherwise) {
  return constant(p, attributes.number(name, otherwise));
}
Value negation(VectorProgram& p, Value a) { return p.unary(VectorOp::logical_not, a); }

// alpha (e^x - 1) below zero, x above.
Value elu(VectorProgram& p, Value x, double alpha) {
  return p.unary(VectorOp::activate, x, Activation::elu, static_cast<float>(alpha));
}

}  // namespace

// Truths are 0 and 1.
Value compose_xor(VectorProgram& p, std::span<const Value> in, const Attributes&) {
  return negation(p, p.binary(VectorOp::equal, in[0], in[1]));
}

Value compose_is_nan(VectorProgram& p, std::span<const Value> in, const Attributes&) {
  return negation(p, p.binary(VectorOp::equal, in[0], in[0]));
}

Value compose_is_inf(VectorProgram& p, std::span<const Value> in, const Attributes& attributes) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool above = attributes.integer("detect_positive", 1) != 0,
             below = attributes.integer("detect_negative", 1) != 0;
  const Value x = above && below ? p.unary(VectorOp::abs, in[0]) : in[0];
  if (!above && !below) return p.binary(VectorOp::less, x, constant(p, -infinity));  // nothing is less
  return p.binary(VectorOp::equal, x, constant(p, above ? infinity : -infinity));
}

Value compose_mean(VectorProgram& p, std::span<const Value> in, const Attributes&) {
  Value sum = in[0];
  for (const Value next : in.subspan(1)) sum = p.binary(VectorOp::add, sum, next);
  return p.binary(VectorOp::mul, sum, constant(p, 1.0 / static_cast<double>(in.size())));
}

// The sign of the dividend with `fmod`, else of the divisor.
Value compose_mod(VectorProgram& p, std::span<const Value> in, const Attributes& attributes) {
  const Value rest = p.binary(VectorOp::remainder, in[0], in[1]), zero = p.constant(0);
  if (attributes.integer("fmod", 0) != 0) return rest;
  const Value product =
      p.binary(VectorOp::mul, p.unary(VectorOp::sign, rest), p.unary(VectorOp::sign, in[1]));
  return p.select(p.binary(VectorOp::less, product, zero), p.binary(VectorOp::add, rest, in[1]), rest);
}

Value compose_softsign(VectorProgram& p, std::span<const Value> in, const Attributes&) {
  return p.binary(VectorOp::div, in[0],
                  p.binary(VectorOp::add, p.constant(1), p.unary(VectorOp::abs, in[0])));
}

// The defaults of ONNX (operator set 6): fixed points of mean 0 and variance 1 (Klambauer et al.,
// "Self-normalizing neural networks", NIPS 2017), as f32. No unit.
constexpr double selu_alpha = 1.67326319217681884765625, selu_gamma = 1.05070102214813232421875;

Value compose_selu(VectorProgram& p, std::span<const Value> in, const Attributes& attributes) {
  const Value y = elu(p, in[0], attributes.number("alpha", selu_alpha));
  return p.binary(VectorOp::mul, number(p, attributes, "gamma", selu_gamma), y);
}

Value compose_celu(VectorProgram& p, std::span<const Value> in, const Attributes& attributes) {
  const double alpha = attributes.number("alpha", 1);
  const Value below = elu(p, p.binary(VectorOp::div, in[0], constant(p, alpha)), 1);
  const Value is_below = p.binary(VectorOp::less_or_equal, in[0], p.constant(0));
  return p.select(is_below, p.binary(VectorOp::mul, constant(p, alpha), below), in[0]);
}

Value compose_mish(VectorProgram& p, std::span<const Value> in, const Attributes&) {
  const Value softplus = p.unary(VectorOp::activate, in[0], Activation::softplus);
  return p.binary(VectorOp::mul, in[0], p.unary(VectorOp::tanh, softplus));
}

Value compose_swish(VectorProgram& p, std::span<const Value> in, const Attributes& attributes) {
  const double alpha = attributes.number("alpha", 1);
  const Value scaled = alpha == 1 ? in[0] : p.binary(VectorOp::mul, in[0], constant(p, alpha));
  return p.binary(VectorOp::mul, in[0], p.unary(VectorOp::sigmoid, scaled));
}

Value compose_swiglu(VectorProgram& p, std::span<const Value> in, const Attributes& attributes) {
  return p.binary(VectorOp::mul, compose_swish(p, in, attributes), in[1]);
}

Value compose_thresholded(VectorProgram& p, std::span<const Value> in, const Attributes& attributes) {
  return p.select(p.binary(VectorOp::less, number(p, attributes, "alpha", 1), in[0]), in[0], p.constant(0));
}

Value compose_shrink(VectorProgram& p, std::span<const Value> in, const Attributes& attributes) {
  const Value bias = number(p, attributes, "bias", 0), edge = number(p, attributes, "lambd", 0.5);
  const Value above =
      p.select(p.binary(VectorOp::less, edge, in[0]), p.binary(VectorOp::sub, in[0], bias), p.constant(0));
  const Value is_below = p.binary(VectorOp::less, in[0], p.unary(VectorOp::neg, edge));
  return p.select(is_below, p.binary(VectorOp::add, in[0], bias), above);
}

Value compose_prelu(VectorProgram& p, std::span<const Value> in, const Attributes&) {
  return p.select(p.binary(VectorOp::less, in[0], p.constant(0)), p.binary(VectorOp::mul, in[1], in[0]),
                  in[0]);
}

std::optional<Value> constant_power(VectorProgram& p, Value x, double exponent) {
  const double quarters = 4 * std::abs(exponent);
  if (!(quarters >= 1 && quarters <= 16) || quarters != std::floor(quarters)) return std::nullopt;
  if (exponent == -0.5) return p.unary(VectorOp::rsqrt, x);
  const int count = static_cast<int>(quarters);
  std::optional<Value> product;
  const auto multiply = [&](Value factor) {
    product = product ? p.binary(VectorOp::mul, *product, factor) : factor;
  };
  const int whole = count / 4;
  if (whole >= 2) {
    const Value square = p.unary(VectorOp::square, x);
    multiply(whole == 4 ? p.unary(VectorOp::square, square) : square);
  }
  if (whole % 2 == 1) multiply(x);
  if (count % 4 != 0) {
    const Value root = p.unary(VectorOp::sqrt, x);
    if (count % 4 != 1) multiply(root);
    if (count % 2 == 1) multiply(p.unary(VectorOp::sqrt, root));
  }
  return exponent < 0 ? p.unary(VectorOp::reciprocal, *product) : *product;
}

}  // namespace superstep::target::cpu
