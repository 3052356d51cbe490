#include "superstep/target/cpu/kernels/core/epilogue.h"

#include <fmt/format.h>

namespace superstep::kernels {

const char* name_of(Activation activation) {
  static constexpr const char* names[] = {
      "identity", "relu",         "leaky relu", "sigmoid", "tanh", "gelu (erf)", "gelu (tanh)",
      "silu",     "hard sigmoid", "hard swish", "clip",    "elu",  "softplus"};
  return names[static_cast<int>(activation)];
}

bool gradient_from_output(Activation activation, float alpha) {
  switch (activation) {
    case Activation::leaky_relu:
    case Activation::elu:
    case Activation::hard_sigmoid: return alpha > 0;
    case Activation::identity:
    case Activation::relu:
    case Activation::sigmoid:
    case Activation::tanh:
    case Activation::clip: return true;
    default: return false;
  }
}

Epilogue& Epilogue::bias() {
  steps.push_back({.op = EpilogueOp::bias});
  return *this;
}

Epilogue& Epilogue::scale(float factor) {
  steps.push_back({.op = EpilogueOp::scale, .alpha = factor});
  return *this;
}

Epilogue& Epilogue::scale_channels() {
  steps.push_back({.op = EpilogueOp::scale_channels});
  return *this;
}

Epilogue& Epilogue::add(ElementType type) {
  steps.push_back({.op = EpilogueOp::add, .type = type});
  return *this;
}

Epilogue& Epilogue::add_bytes(float scale, float zero_point) {
  steps.push_back({.op = EpilogueOp::add, .alpha = scale, .beta = zero_point, .type = ElementType::u8});
  return *this;
}

Epilogue& Epilogue::multiply(ElementType type) {
  steps.push_back({.op = EpilogueOp::multiply, .type = type});
  return *this;
}

Epilogue& Epilogue::subtract(ElementType type) {
  steps.push_back({.op = EpilogueOp::subtract, .type = type});
  return *this;
}

Epilogue& Epilogue::activate(Activation activation, float alpha, float beta) {
  steps.push_back({.op = EpilogueOp::activate, .activation = activation, .alpha = alpha, .beta = beta});
  return *this;
}

Epilogue& Epilogue::activation_gradient(Activation activation, float alpha, float beta, ElementType type) {
  steps.push_back({.op = EpilogueOp::activation_gradient,
                   .activation = activation,
                   .alpha = alpha,
                   .beta = beta,
                   .from_output = gradient_from_output(activation, alpha),
                   .type = type});
  return *this;
}

Epilogue& Epilogue::round_half() {
  steps.push_back({.op = EpilogueOp::round_half});
  return *this;
}

Epilogue& Epilogue::save(ElementType type) {
  steps.push_back({.op = EpilogueOp::save, .type = type});
  return *this;
}

namespace {

std::string to_string(const EpilogueStep& step) {
  const std::string activation = name_of(step.activation);
  switch (step.op) {
    case EpilogueOp::bias: return "bias";
    case EpilogueOp::scale_channels: return "scale channels";
    case EpilogueOp::scale: return fmt::format("scale {}", step.alpha);
    case EpilogueOp::add: return step.type == ElementType::u8 ? "add bytes" : "add";
    case EpilogueOp::subtract: return "subtract";
    case EpilogueOp::multiply: return "multiply";
    case EpilogueOp::activate: return activation;
    case EpilogueOp::activation_gradient: return activation + " gradient";
    case EpilogueOp::round_half: return "round to f16";
    case EpilogueOp::save: return "save";
  }
  return {};
}

}  // namespace

bool EpilogueStep::reads_input() const {
  return op != EpilogueOp::scale && op != EpilogueOp::activate && op != EpilogueOp::round_half &&
         op != EpilogueOp::save;
}

bool EpilogueStep::reads_tensor() const {
  return op == EpilogueOp::add || op == EpilogueOp::subtract || op == EpilogueOp::multiply ||
         op == EpilogueOp::activation_gradient;
}

std::size_t Epilogue::inputs() const {
  std::size_t count = 0;
  for (const EpilogueStep& step : steps) count += step.reads_input();
  return count;
}

std::size_t Epilogue::outputs() const {
  std::size_t count = 0;
  for (const EpilogueStep& step : steps) count += step.op == EpilogueOp::save;
  return count;
}

std::string to_string(const Epilogue& epilogue) {
  std::string text;
  for (const EpilogueStep& step : epilogue.steps) text += (text.empty() ? "" : ", ") + to_string(step);
  return text;
}

}  // namespace superstep::kernels
