// The optimisers of ONNX's domain ai.onnx.preview.training, on any number of tensors at once: inputs are the
// rate, the update count, then all tensors, all their gradients and each of their buffers in turn.
#include <fmt/format.h>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/training/optimizer.h"

namespace superstep::op {
namespace {

// How many tensors are optimised; each has `parts` inputs: itself, its gradient and its buffers.
std::size_t tensor_count(std::size_t inputs, std::size_t parts) {
  require(inputs > 2 && (inputs - 2) % parts == 0,
          fmt::format("takes rate, update count and {} inputs a tensor, not {} in all", parts, inputs));
  return (inputs - 2) / parts;
}

std::vector<ValueType> infer_optimizer(const InferContext& context, std::size_t parts) {
  require_floating(context, 0, "R");
  require_scalar(context, 0, "R");
  require_integer(context, 1, "T");
  require_scalar(context, 1, "T");
  const std::size_t count = tensor_count(context.inputs.size(), parts);
  std::vector<ValueType> tensors, outputs;
  for (std::size_t i = 0; i < count; ++i) {
    require_floating(context, 2 + i, "inputs");
    for (std::size_t part = 1; part < parts; ++part) {
      require_shape(context, 2 + part * count + i, "inputs", context.input(2 + i).shape);
      require_same_element(context, 2 + part * count + i, "inputs", 2 + i, "the tensor");
    }
    tensors.push_back(context.input(2 + i));
  }
  // The tensors and their buffers, without the gradients.
  for (std::size_t part = 0; part + 1 < parts; ++part)
    outputs.insert(outputs.end(), tensors.begin(), tensors.end());
  return outputs;
}

// Scalars in f64: powers near 1 lose their digits in narrower types.
struct Step {
  Var rate, count;
};
Step step_of(const DerivativeContext& context) {
  const auto scalar = [](Var v) { return sum_to(cast(v, ElementType::f64), {}); };
  return {scalar(context.inputs[0]), scalar(context.inputs[1])};
}

Var after_first(Var count, Var then, double otherwise) {
  return where(greater(count, constant_like(count, 0)), then, constant_like(count, otherwise));
}

struct Tensors {
  Var x, gradient, first, second;  // `second` only for Adam
};

// The gradient with that of 0.5 * norm_coefficient * ||x||^2.
Var regularized(const Attributes& attributes, const Tensors& t) {
  const double coefficient = attributes.number("norm_coefficient", 0);
  return coefficient == 0 ? t.gradient : t.x * coefficient + t.gradient;
}

std::vector<Var> adagrad_step(const DerivativeContext& context, const Step& step, const Tensors& t) {
  const Attributes& a = context.attributes;
  const Var rate = cast(step.rate / (step.count * a.number("decay_factor", 0) + 1.0), t.x.element());
  const Var g = regularized(a, t), h = t.first + g * g;
  return {t.x - g * rate / (sqrt(h) + a.number("epsilon", 1e-6)), h};
}

std::vector<Var> momentum_step(const DerivativeContext& context, const Step& step, const Tensors& t) {
  const Attributes& a = context.attributes;
  const double alpha = a.number("alpha"), beta = a.number("beta");
  const Var share = cast(after_first(step.count, constant_like(step.count, beta), 1), t.x.element());
  const Var g = regularized(a, t), v = t.first * alpha + g * share;
  const Var direction = a.text("mode") == "nesterov" ? g + v * alpha : v;
  return {t.x - direction * cast(step.rate, t.x.element()), v};
}

std::vector<Var> adam_step(const DerivativeContext& context, const Step& step, const Tensors& t) {
  const Attributes& a = context.attributes;
  const double alpha = a.number("alpha", 0.9), beta = a.number("beta", 0.999);
  const Var count = max(step.count, constant_like(step.count, 1));
  const auto rest = [&](double base) { return 1.0 - pow(constant_like(count, base), count); };
  const Var factor = after_first(step.count, sqrt(rest(beta)) / rest(alpha), 1);
  const Var g = regularized(a, t), v = t.first * alpha + g * (1 - alpha),
            h = t.second * beta + g * g * (1 - beta);
  const Var x = t.x - v * cast(step.rate * factor, t.x.element()) / (sqrt(h) + a.number("epsilon", 1e-6));
  const double decay = a.number("norm_coefficient_post", 0);
  return {decay == 0 ? x : x * (1 - decay), v, h};
}

using StepRule = std::vector<Var> (*)(const DerivativeContext&, const Step&, const Tensors&);

template <StepRule rule, std::size_t parts>
std::vector<Var> decompose_optimizer(const DerivativeContext& context) {
  const std::size_t count = tensor_count(context.inputs.size(), parts);
  const Step step = step_of(context);
  const auto part = [&](std::size_t p, std::size_t i) {
    return p < parts ? context.inputs[2 + p * count + i] : Var();
  };
  std::vector<Var> outputs(count * (parts - 1));
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<Var> next = rule(context, step, {part(0, i), part(1, i), part(2, i), part(3, i)});
    for (std::size_t p = 0; p < next.size(); ++p) outputs[p * count + i] = next[p];
  }
  return outputs;
}

std::vector<ValueType> infer_adagrad(const InferContext& context) { return infer_optimizer(context, 3); }
std::vector<ValueType> infer_adam(const InferContext& context) { return infer_optimizer(context, 4); }
std::vector<ValueType> infer_momentum(const InferContext& context) {
  const std::string mode = context.attributes.text("mode");
  require(mode == "standard" || mode == "nesterov",
          fmt::format("attribute 'mode' is '{}', expected standard or nesterov", mode));
  for (const char* name : {"alpha", "beta", "norm_coefficient"}) context.attributes.number(name);
  return infer_optimizer(context, 3);
}

}  // namespace

std::span<const Definition> onnx_optimizer_operators() {
  static const Definition definitions[] = {
      composite<decompose_optimizer<adagrad_step, 3>>({"Adagrad", 1, 3, -1, -1}, infer_adagrad,
                                                      {.elements = Elements::floating,
                                                       .work = WorkKind::elementwise,
                                                       .domain = "ai.onnx.preview.training"}),
      composite<decompose_optimizer<momentum_step, 3>>({"Momentum", 1, 3, -1, -1}, infer_momentum,
                                                       {.elements = Elements::floating,
                                                        .work = WorkKind::elementwise,
                                                        .domain = "ai.onnx.preview.training"}),
      composite<decompose_optimizer<adam_step, 4>>({"Adam", 1, 3, -1, -1}, infer_adam,
                                                   {.elements = Elements::floating,
                                                    .work = WorkKind::elementwise,
                                                    .domain = "ai.onnx.preview.training"}),
  };
  return definitions;
}

}  // namespace superstep::op
