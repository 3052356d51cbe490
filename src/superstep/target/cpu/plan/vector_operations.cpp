#include "superstep/target/cpu/plan/vector_operations.h"

#include <algorithm>

namespace superstep::target::cpu {

const VectorOperation* vector_operation(std::string_view op) {
  using enum VectorForm;
  using kernels::Activation;
  using kernels::VectorOp;
  // clang-format off
  static constexpr VectorOperation operations[] = {
    {"Neg", unary, VectorOp::neg},
    {"Abs", unary, VectorOp::abs},
    {"Exp", unary, VectorOp::exp},
    {"Log", unary, VectorOp::log},
    {"Sqrt", unary, VectorOp::sqrt},
    {"Reciprocal", unary, VectorOp::reciprocal},
    {"Sign", unary, VectorOp::sign},
    {"Floor", unary, VectorOp::floor},
    {"Ceil", unary, VectorOp::ceil},
    {"Round", unary, VectorOp::round},
    {"Erf", unary, VectorOp::erf},
    {"Not", unary, VectorOp::logical_not},
    {"Sin", unary, VectorOp::sin},
    {"Cos", unary, VectorOp::cos},
    {"Relu", unary, VectorOp::relu, Activation::relu},
    {"Sigmoid", unary, VectorOp::sigmoid, Activation::sigmoid},
    {"Tanh", unary, VectorOp::tanh, Activation::tanh},
    {"Add", binary, VectorOp::add},
    {"Sub", binary, VectorOp::sub},
    {"Mul", binary, VectorOp::mul},
    {"Div", binary, VectorOp::div},
    {"Pow", binary, VectorOp::pow},
    {"Max", binary, VectorOp::max},
    {"Min", binary, VectorOp::min},
    {"Equal", binary, VectorOp::equal},
    {"Less", binary, VectorOp::less},
    {"LessOrEqual", binary, VectorOp::less_or_equal},
    {"And", binary, VectorOp::logical_and},
    {"Or", binary, VectorOp::logical_or},
    {"Greater", swapped, VectorOp::less},
    {"GreaterOrEqual", swapped, VectorOp::less_or_equal},
    {"Where", select},
    {"Cast", convert},
    {"LeakyRelu", activate, VectorOp::activate, Activation::leaky_relu, 0.01},
    {"Elu", activate, VectorOp::activate, Activation::elu, 1.0},
    {"Softplus", activate, VectorOp::activate, Activation::softplus},
    {"HardSigmoid", activate, VectorOp::activate, Activation::hard_sigmoid, 0.2, 0.5},
    {"HardSwish", activate, VectorOp::activate, Activation::hard_swish},
    {"Gelu", activate, VectorOp::activate, Activation::gelu_erf},   // or gelu_tanh, by `approximate`
    {"Clip", activate, VectorOp::activate, Activation::clip},  // between inputs that must be constants
  };
  // clang-format on
  const auto* found = std::ranges::find(operations, op, &VectorOperation::op);
  return found == std::end(operations) ? nullptr : found;
}

}  // namespace superstep::target::cpu
