#include "superstep/target/cpu/kernels/vector_program.h"

namespace superstep::kernels {

const char* name_of(VectorOp op) {
  static constexpr const char* names[] = {"neg",
                                          "abs",
                                          "exp",
                                          "log",
                                          "sqrt",
                                          "rsqrt",
                                          "reciprocal",
                                          "square",
                                          "floor",
                                          "ceil",
                                          "round",
                                          "sign",
                                          "sin",
                                          "cos",
                                          "relu",
                                          "sigmoid",
                                          "tanh",
                                          "erf",
                                          "logical_not",
                                          "activate",
                                          "activation_gradient",
                                          "output_gradient",
                                          "add",
                                          "sub",
                                          "mul",
                                          "div",
                                          "max",
                                          "min",
                                          "pow",
                                          "equal",
                                          "less",
                                          "less_or_equal",
                                          "logical_and",
                                          "logical_or",
                                          "fma",
                                          "select"};
  return names[static_cast<int>(op)];
}

VectorProgram::Value VectorProgram::input(ElementType type, Strides strides) {
  nodes_.push_back({.kind = Kind::input, .instruction = {}, .type = type, .strides = std::move(strides)});
  return static_cast<Value>(nodes_.size() - 1);
}

VectorProgram::Value VectorProgram::constant(float value) {
  nodes_.push_back({.kind = Kind::constant, .instruction = {}, .value = value, .strides = {}});
  return static_cast<Value>(nodes_.size() - 1);
}

VectorProgram::Value VectorProgram::unary(VectorOp op, Value a) { return ternary(op, a, -1, -1); }

VectorProgram::Value VectorProgram::unary(VectorOp op, Value a, Activation activation, float alpha,
                                          float beta) {
  const Value value = ternary(op, a, -1, -1);
  Instruction& instruction = nodes_.back().instruction;
  instruction.activation = activation;
  instruction.alpha = alpha;
  instruction.beta = beta;
  return value;
}

VectorProgram::Value VectorProgram::binary(VectorOp op, Value a, Value b) { return ternary(op, a, b, -1); }

VectorProgram::Value VectorProgram::ternary(VectorOp op, Value a, Value b, Value c) {
  nodes_.push_back(
      {.kind = Kind::instruction, .instruction = {.op = op, .a = a, .b = b, .c = c}, .strides = {}});
  return static_cast<Value>(nodes_.size() - 1);
}

void VectorProgram::store(Value value, ElementType type, Strides strides) {
  outputs_.push_back({.value = value, .type = type, .strides = std::move(strides)});
}

void VectorProgram::sum_all(Value value, bool accumulate) {
  outputs_.push_back({.value = value, .target = Target::sum_all, .strides = {}, .accumulate = accumulate});
}

void VectorProgram::sum_leading(Value value, bool accumulate) {
  outputs_.push_back(
      {.value = value, .target = Target::sum_leading, .strides = {}, .accumulate = accumulate});
}

}  // namespace superstep::kernels
