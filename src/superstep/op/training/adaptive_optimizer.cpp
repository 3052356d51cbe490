// Adamax, RMSProp and LAMB: steps that are divided by what gradients were.
#include <cmath>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/derivative.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/training/optimizer.h"
#include "superstep/op/training/optimizer_parts.h"

namespace superstep::op {
namespace {

AdamaxAttributes adamax_attributes(const Attributes& a) {
  return {a.number("beta1", 0.9), a.number("beta2", 0.999), a.number("epsilon", 1e-8),
          a.number("weight_decay", 0)};
}

std::vector<ValueType> infer_adamax(const InferContext& context) {
  check_parameter(context, 5);
  check_buffer(context, 2, "m");
  check_buffer(context, 3, "u");
  require_integer(context, 4, "step");
  require_scalar(context, 4, "step");
  return std::vector<ValueType>(3, context.input(0));
}

void evaluate_adamax(const EvaluateContext& context) {
  const AdamaxAttributes a = adamax_attributes(context.attributes);
  std::vector<double> p = widen<double>(context.input(0)), gradient = widen<double>(context.input(1));
  std::vector<double> m = widen<double>(context.input(2)), u = widen<double>(context.input(3));
  const double t = static_cast<double>(integer_of(context.input(4)) + 1), rate = context.input(5).at(0);
  const double first = 1 - std::pow(a.beta1, t);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double g = gradient[i] + a.weight_decay * p[i];
    m[i] = a.beta1 * m[i] + (1 - a.beta1) * g;
    u[i] = std::max(a.beta2 * u[i], std::abs(g) + a.epsilon);
    p[i] -= rate * m[i] / (first * u[i]);
  }
  if (context.wants(0)) narrow(p, context.output(0));
  if (context.wants(1)) narrow(m, context.output(1));
  if (context.wants(2)) narrow(u, context.output(2));
}

std::vector<Var> decompose_adamax(const DerivativeContext& context) {
  const AdamaxAttributes a = adamax_attributes(context.attributes);
  const Var p = context.inputs[0], rate = scalar_like(context.inputs[5], p);
  const Var g = decayed_gradient(context, a.weight_decay);
  const Var m = context.inputs[2] * a.beta1 + g * (1 - a.beta1);
  const Var u = max(context.inputs[3] * a.beta2, abs(g) + a.epsilon);
  const Var first = correction(count_of(context.inputs[4]), a.beta1, p.element());
  return {p - m / (u * first) * rate, m, u};
}

RmspropAttributes rmsprop_attributes(const Attributes& a) {
  return {a.number("decay", 0.9), a.number("momentum", 0), a.number("epsilon", 1e-3),
          a.number("weight_decay", 0)};
}

std::vector<ValueType> infer_rmsprop(const InferContext& context) {
  check_parameter(context, 3);
  check_buffer(context, 2, "v");
  require(context.has(4) || rmsprop_attributes(context.attributes).momentum == 0,
          "input buffer is left out, but attribute 'momentum' is not 0");
  if (!context.has(4)) return {context.input(0), context.input(0)};
  check_buffer(context, 4, "buffer");
  return std::vector<ValueType>(3, context.input(0));
}

void evaluate_rmsprop(const EvaluateContext& context) {
  const RmspropAttributes a = rmsprop_attributes(context.attributes);
  std::vector<double> p = widen<double>(context.input(0)), gradient = widen<double>(context.input(1));
  std::vector<double> v = widen<double>(context.input(2));
  const double rate = context.input(3).at(0);
  std::vector<double> buffer =
      context.has(4) ? widen<double>(context.input(4)) : std::vector<double>(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double g = gradient[i] + a.weight_decay * p[i];
    v[i] = a.decay * v[i] + (1 - a.decay) * g * g;
    buffer[i] = a.momentum * buffer[i] + rate * g / std::sqrt(v[i] + a.epsilon);
    p[i] -= buffer[i];
  }
  if (context.wants(0)) narrow(p, context.output(0));
  if (context.wants(1)) narrow(v, context.output(1));
  if (context.wants(2)) narrow(buffer, context.output(2));
}

std::vector<Var> decompose_rmsprop(const DerivativeContext& context) {
  const RmspropAttributes a = rmsprop_attributes(context.attributes);
  const Var p = context.inputs[0], rate = scalar_like(context.inputs[3], p);
  const Var g = decayed_gradient(context, a.weight_decay);
  const Var v = context.inputs[2] * a.decay + g * g * (1 - a.decay);
  const Var step = g / sqrt(v + a.epsilon) * rate;
  if (!context.has(4)) return {p - step, v};
  const Var buffer = context.inputs[4] * a.momentum + step;
  return {p - buffer, v, buffer};
}

LambAttributes lamb_attributes(const Attributes& a) {
  return {a.number("beta1", 0.9), a.number("beta2", 0.999), a.number("epsilon", 1e-6),
          a.number("weight_decay", 0)};
}

std::vector<ValueType> infer_lamb(const InferContext& context) {
  check_parameter(context, 5);
  check_buffer(context, 2, "m");
  check_buffer(context, 3, "v");
  require_integer(context, 4, "step");
  require_scalar(context, 4, "step");
  return std::vector<ValueType>(3, context.input(0));
}

double norm_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

void evaluate_lamb(const EvaluateContext& context) {
  const LambAttributes a = lamb_attributes(context.attributes);
  std::vector<double> p = widen<double>(context.input(0)), direction = widen<double>(context.input(1));
  std::vector<double> m = widen<double>(context.input(2)), v = widen<double>(context.input(3));
  const double t = static_cast<double>(integer_of(context.input(4)) + 1), rate = context.input(5).at(0);
  const double first = 1 - std::pow(a.beta1, t), second = 1 - std::pow(a.beta2, t);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double g = direction[i];
    m[i] = a.beta1 * m[i] + (1 - a.beta1) * g;
    v[i] = a.beta2 * v[i] + (1 - a.beta2) * g * g;
    direction[i] = m[i] / first / (std::sqrt(v[i] / second) + a.epsilon) + a.weight_decay * p[i];
  }
  const double weight = norm_of(p), length = norm_of(direction);
  const double ratio = weight > 0 && length > 0 ? weight / length : 1;
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= rate * ratio * direction[i];
  if (context.wants(0)) narrow(p, context.output(0));
  if (context.wants(1)) narrow(m, context.output(1));
  if (context.wants(2)) narrow(v, context.output(2));
}

std::vector<Var> decompose_lamb(const DerivativeContext& context) {
  const LambAttributes a = lamb_attributes(context.attributes);
  const Var p = context.inputs[0], rate = scalar_like(context.inputs[5], p);
  const Var t = count_of(context.inputs[4]);
  const Var g = decayed_gradient(context, 0);
  const Var m = context.inputs[2] * a.beta1 + g * (1 - a.beta1);
  const Var v = context.inputs[3] * a.beta2 + g * g * (1 - a.beta2);
  const Var first = correction(t, a.beta1, p.element()), second = correction(t, a.beta2, p.element());
  Var direction = m / first / (sqrt(v / second) + a.epsilon);
  if (a.weight_decay != 0) direction = direction + p * a.weight_decay;
  const Var weight = reduce_l2(p), length = reduce_l2(direction), zero = constant_like(weight, 0);
  const Var both = logical_and(greater(weight, zero), greater(length, zero));
  const Var ratio = where(both, weight / length, constant_like(weight, 1));
  return {p - direction * (rate * ratio), m, v};
}

double adamax_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  return 11.0 * static_cast<double>(inputs[0].shape.element_count());
}
double rmsprop_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  return (inputs.size() > 4 ? 11.0 : 9.0) * static_cast<double>(inputs[0].shape.element_count());
}

// Adam's, two sums of squares and the ratio.
double lamb_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  return 21.0 * static_cast<double>(inputs[0].shape.element_count());
}

}  // namespace

AdamaxStep adamax(Var parameter, Var gradient, Var m, Var u, Var step, Var rate,
                  const AdamaxAttributes& attributes) {
  const Var inputs[] = {parameter, gradient, m, u, step, rate};
  const std::vector<Var> outputs = parameter.builder().node("superstep.Adamax", inputs,
                                                            {{"beta1", attributes.beta1},
                                                             {"beta2", attributes.beta2},
                                                             {"epsilon", attributes.epsilon},
                                                             {"weight_decay", attributes.weight_decay}},
                                                            3);
  return {outputs[0], outputs[1], outputs[2]};
}

RmspropStep rmsprop(Var parameter, Var gradient, Var v, Var rate, Var buffer,
                    const RmspropAttributes& attributes) {
  const Var inputs[] = {parameter, gradient, v, rate, buffer};
  std::vector<Var> outputs = parameter.builder().node("superstep.RMSProp", inputs,
                                                      {{"decay", attributes.decay},
                                                       {"momentum", attributes.momentum},
                                                       {"epsilon", attributes.epsilon},
                                                       {"weight_decay", attributes.weight_decay}},
                                                      buffer.valid() ? 3 : 2);
  outputs.resize(3);
  return {outputs[0], outputs[1], outputs[2]};
}

AdamStep lamb(Var parameter, Var gradient, Var m, Var v, Var step, Var rate,
              const LambAttributes& attributes) {
  const Var inputs[] = {parameter, gradient, m, v, step, rate};
  const std::vector<Var> outputs = parameter.builder().node("superstep.Lamb", inputs,
                                                            {{"beta1", attributes.beta1},
                                                             {"beta2", attributes.beta2},
                                                             {"epsilon", attributes.epsilon},
                                                             {"weight_decay", attributes.weight_decay}},
                                                            3);
  return {outputs[0], outputs[1], outputs[2]};
}

std::span<const Definition> adaptive_optimizer_operators() {
  static const Definition definitions[] = {
      {.name = "superstep.Adamax",
       .since_opset = 0,
       .min_inputs = 6,
       .max_inputs = 6,
       .max_outputs = 3,
       .traits = {.elements = Elements::floating, .work = WorkKind::optimizer},
       .infer = infer_adamax,
       .flops = adamax_flops,
       .evaluate = evaluate_adamax,
       .vjp = vjp_through<decompose_adamax>,
       .jvp = jvp_through<decompose_adamax>,
       .decompose = decompose_adamax},
      {.name = "superstep.RMSProp",
       .since_opset = 0,
       .min_inputs = 4,
       .max_inputs = 5,
       .max_outputs = 3,
       .traits = {.elements = Elements::floating, .work = WorkKind::optimizer},
       .infer = infer_rmsprop,
       .flops = rmsprop_flops,
       .evaluate = evaluate_rmsprop,
       .vjp = vjp_through<decompose_rmsprop>,
       .jvp = jvp_through<decompose_rmsprop>,
       .decompose = decompose_rmsprop},
      {.name = "superstep.Lamb",
       .since_opset = 0,
       .min_inputs = 6,
       .max_inputs = 6,
       .max_outputs = 3,
       .traits = {.elements = Elements::floating, .work = WorkKind::optimizer},
       .infer = infer_lamb,
       .flops = lamb_flops,
       .evaluate = evaluate_lamb,
       .vjp = vjp_through<decompose_lamb>,
       .jvp = jvp_through<decompose_lamb>,
       .decompose = decompose_lamb},
  };
  return definitions;
}

}  // namespace superstep::op
