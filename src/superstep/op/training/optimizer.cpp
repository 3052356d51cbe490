#include "superstep/op/training/optimizer.h"

#include <cmath>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/derivative.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/training/optimizer_parts.h"

namespace superstep::op {
namespace {

SgdAttributes sgd_attributes(const Attributes& a) {
  return {a.number("momentum", 0), a.number("weight_decay", 0), a.integer("nesterov", 0) != 0};
}

std::vector<ValueType> infer_sgd(const InferContext& context) {
  check_parameter(context, 2);
  const SgdAttributes attributes = sgd_attributes(context.attributes);
  require(context.has(3) || (attributes.momentum == 0 && !attributes.nesterov),
          "input buffer is left out, but attribute 'momentum' is not 0");
  if (!context.has(3)) return {context.input(0)};
  check_buffer(context, 3, "buffer");
  return {context.input(0), context.input(0)};
}

void evaluate_sgd(const EvaluateContext& context) {
  const auto [momentum, weight_decay, nesterov] = sgd_attributes(context.attributes);
  std::vector<double> p = widen<double>(context.input(0));
  const std::vector<double> gradient = widen<double>(context.input(1));
  const double rate = context.input(2).at(0);
  std::vector<double> buffer =
      context.has(3) ? widen<double>(context.input(3)) : std::vector<double>(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double g = gradient[i] + weight_decay * p[i];
    buffer[i] = momentum * buffer[i] + g;
    p[i] -= rate * (nesterov ? g + momentum * buffer[i] : buffer[i]);
  }
  if (context.wants(0)) narrow(p, context.output(0));
  if (context.wants(1)) narrow(buffer, context.output(1));
}

std::vector<Var> decompose_sgd(const DerivativeContext& context) {
  const auto [momentum, weight_decay, nesterov] = sgd_attributes(context.attributes);
  const Var p = context.inputs[0], rate = scalar_like(context.inputs[2], p);
  const Var g = decayed_gradient(context, weight_decay);
  if (!context.has(3)) return {p - g * rate};
  const Var buffer = context.inputs[3] * momentum + g;
  return {p - (nesterov ? g + buffer * momentum : buffer) * rate, buffer};
}

AdamAttributes adam_attributes(const Attributes& a) {
  return {a.number("beta1", 0.9), a.number("beta2", 0.999), a.number("epsilon", 1e-8),
          a.number("weight_decay", 0), a.integer("decoupled", 0) != 0};
}

std::vector<ValueType> infer_adam(const InferContext& context) {
  check_parameter(context, 5);
  check_buffer(context, 2, "m");
  check_buffer(context, 3, "v");
  require_integer(context, 4, "step");
  require_scalar(context, 4, "step");
  return std::vector<ValueType>(3, context.input(0));
}

void evaluate_adam(const EvaluateContext& context) {
  const AdamAttributes a = adam_attributes(context.attributes);
  std::vector<double> p = widen<double>(context.input(0)), gradient = widen<double>(context.input(1));
  std::vector<double> m = widen<double>(context.input(2)), v = widen<double>(context.input(3));
  const double t = static_cast<double>(integer_of(context.input(4)) + 1), rate = context.input(5).at(0);
  const double correction1 = 1 - std::pow(a.beta1, t), correction2 = 1 - std::pow(a.beta2, t);
  const double coupled = a.decoupled ? 0 : a.weight_decay, decoupled = a.decoupled ? a.weight_decay : 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double g = gradient[i] + coupled * p[i];
    m[i] = a.beta1 * m[i] + (1 - a.beta1) * g;
    v[i] = a.beta2 * v[i] + (1 - a.beta2) * g * g;
    const double direction = m[i] / correction1 / (std::sqrt(v[i] / correction2) + a.epsilon);
    p[i] -= rate * (direction + decoupled * p[i]);
  }
  if (context.wants(0)) narrow(p, context.output(0));
  if (context.wants(1)) narrow(m, context.output(1));
  if (context.wants(2)) narrow(v, context.output(2));
}

std::vector<Var> decompose_adam(const DerivativeContext& context) {
  const AdamAttributes a = adam_attributes(context.attributes);
  const Var p = context.inputs[0], rate = scalar_like(context.inputs[5], p);
  const Var t = count_of(context.inputs[4]);
  const Var g = decayed_gradient(context, a.decoupled ? 0 : a.weight_decay);
  const Var m = context.inputs[2] * a.beta1 + g * (1 - a.beta1);
  const Var v = context.inputs[3] * a.beta2 + g * g * (1 - a.beta2);
  const Var first = correction(t, a.beta1, p.element()), second = correction(t, a.beta2, p.element());
  Var direction = m / first / (sqrt(v / second) + a.epsilon);
  if (a.weight_decay != 0 && a.decoupled) direction = direction + p * a.weight_decay;
  return {p - direction * rate, m, v};
}

double sgd_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  return (inputs.size() > 3 ? 6.0 : 4.0) * static_cast<double>(inputs[0].shape.element_count());
}
double adam_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  return 16.0 * static_cast<double>(inputs[0].shape.element_count());
}

}  // namespace

SgdStep sgd(Var parameter, Var gradient, Var rate, Var buffer, const SgdAttributes& attributes) {
  const Var inputs[] = {parameter, gradient, rate, buffer};
  std::vector<Var> outputs = parameter.builder().node("superstep.Sgd", inputs,
                                                      {{"momentum", attributes.momentum},
                                                       {"weight_decay", attributes.weight_decay},
                                                       {"nesterov", std::int64_t{attributes.nesterov}}},
                                                      buffer.valid() ? 2 : 1);
  outputs.resize(2);
  return {outputs[0], outputs[1]};
}

AdamStep adam(Var parameter, Var gradient, Var m, Var v, Var step, Var rate,
              const AdamAttributes& attributes) {
  const Var inputs[] = {parameter, gradient, m, v, step, rate};
  const std::vector<Var> outputs =
      parameter.builder().node("superstep.Adam", inputs,
                               {{"beta1", attributes.beta1},
                                {"beta2", attributes.beta2},
                                {"epsilon", attributes.epsilon},
                                {"weight_decay", attributes.weight_decay},
                                {"decoupled", std::int64_t{attributes.decoupled}}},
                               3);
  return {outputs[0], outputs[1], outputs[2]};
}

bool is_optimizer_state(std::string_view name) {
  for (const std::string_view prefix : {"adam.", "adamax.", "lamb.", "rmsprop.", "sgd.", "average/"})
    if (name.starts_with(prefix)) return true;
  return false;
}

std::span<const Definition> optimizer_operators() {
  static const Definition definitions[] = {
      {.name = "superstep.Sgd",
       .since_opset = 0,
       .min_inputs = 3,
       .max_inputs = 4,
       .max_outputs = 2,
       .traits = {.elements = Elements::floating, .work = WorkKind::optimizer},
       .infer = infer_sgd,
       .flops = sgd_flops,
       .evaluate = evaluate_sgd,
       .vjp = vjp_through<decompose_sgd>,
       .jvp = jvp_through<decompose_sgd>,
       .decompose = decompose_sgd},
      {.name = "superstep.Adam",
       .since_opset = 0,
       .min_inputs = 6,
       .max_inputs = 6,
       .max_outputs = 3,
       .traits = {.elements = Elements::floating, .work = WorkKind::optimizer},
       .infer = infer_adam,
       .flops = adam_flops,
       .evaluate = evaluate_adam,
       .vjp = vjp_through<decompose_adam>,
       .jvp = jvp_through<decompose_adam>,
       .decompose = decompose_adam},
  };
  return definitions;
}

}  // namespace superstep::op
