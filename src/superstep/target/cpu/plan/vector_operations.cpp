#include "superstep/target/cpu/plan/vector_operations.h"

#include <algorithm>

namespace superstep::target::cpu {

namespace {

using enum VectorForm;
using kernels::Activation;
using kernels::VectorOp;

constexpr VectorOperation several(std::string_view name, Compose compose) {
  return {.op = name, .form = composed, .compose = compose};
}

// clang-format off
constexpr VectorOperation operations[] = {
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
  {"Tan", unary, VectorOp::tan},
  {"Asin", unary, VectorOp::asin},
  {"Acos", unary, VectorOp::acos},
  {"Atan", unary, VectorOp::atan},
  {"Sinh", unary, VectorOp::sinh},
  {"Cosh", unary, VectorOp::cosh},
  {"Asinh", unary, VectorOp::asinh},
  {"Acosh", unary, VectorOp::acosh},
  {"Atanh", unary, VectorOp::atanh},
  {"Relu", unary, VectorOp::relu, Activation::relu},
  {"Sigmoid", unary, VectorOp::sigmoid, Activation::sigmoid},
  {"Tanh", unary, VectorOp::tanh, Activation::tanh},
  {"Add", binary, VectorOp::add},
  {"Sub", binary, VectorOp::sub},
  {"Mul", binary, VectorOp::mul},
  {"Div", binary, VectorOp::div},
  {"Pow", binary, VectorOp::pow},
  {"Sum", binary, VectorOp::add},
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
  {"CastLike", convert},
  {"LeakyRelu", activate, VectorOp::activate, Activation::leaky_relu, 0.01},
  {"Elu", activate, VectorOp::activate, Activation::elu, 1.0},
  {"Softplus", activate, VectorOp::activate, Activation::softplus},
  {"HardSigmoid", activate, VectorOp::activate, Activation::hard_sigmoid, 0.2, 0.5},
  {"HardSwish", activate, VectorOp::activate, Activation::hard_swish},
  {"Gelu", activate, VectorOp::activate, Activation::gelu_erf},   // or gelu_tanh, by `approximate`
  {"Clip", activate, VectorOp::activate, Activation::clip},  // between inputs that must be constants
  several("Xor", compose_xor),
  several("IsNaN", compose_is_nan),
  several("IsInf", compose_is_inf),
  several("Mean", compose_mean),
  several("Mod", compose_mod),
  several("Softsign", compose_softsign),
  several("Selu", compose_selu),
  several("Celu", compose_celu),
  several("Mish", compose_mish),
  several("Swish", compose_swish),
  several("SwiGLU", compose_swiglu),
  several("ThresholdedRelu", compose_thresholded),
  several("Shrink", compose_shrink),
  several("PRelu", compose_prelu),
};
// clang-format on

}  // namespace

const VectorOperation* vector_operation(std::string_view op) {
  const auto* found = std::ranges::find(operations, op, &VectorOperation::op);
  return found == std::end(operations) ? nullptr : found;
}

}  // namespace superstep::target::cpu
