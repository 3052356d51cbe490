#include "superstep/target/cpu/kernels/elementwise/vector_program.h"

#include <algorithm>
#include <bit>

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
                                          "tan",
                                          "asin",
                                          "acos",
                                          "atan",
                                          "sinh",
                                          "cosh",
                                          "asinh",
                                          "acosh",
                                          "atanh",
                                          "relu",
                                          "sigmoid",
                                          "tanh",
                                          "erf",
                                          "logical_not",
                                          "round_half",
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
                                          "remainder",
                                          "equal",
                                          "less",
                                          "less_or_equal",
                                          "logical_and",
                                          "logical_or",
                                          "fma",
                                          "select",
                                          "activate_affine",
                                          "slope_affine"};
  return names[static_cast<int>(op)];
}

VectorProgram::Value VectorProgram::input(ElementType type, Strides strides) {
  nodes_.push_back({.kind = Kind::input, .instruction = {}, .type = type, .strides = std::move(strides)});
  return static_cast<Value>(nodes_.size() - 1);
}

VectorProgram::Value VectorProgram::constant(float value) {
  const auto [place, added] =
      constants_.try_emplace(std::bit_cast<std::uint32_t>(value), static_cast<Value>(nodes_.size()));
  if (added) nodes_.push_back({.kind = Kind::constant, .instruction = {}, .value = value, .strides = {}});
  return place->second;
}

VectorProgram::Value VectorProgram::unary(VectorOp op, Value a) { return ternary(op, a, -1, -1); }

VectorProgram::Value VectorProgram::unary(VectorOp op, Value a, Activation activation, float alpha,
                                          float beta) {
  return add({.op = op, .activation = activation, .a = a, .alpha = alpha, .beta = beta});
}

VectorProgram::Value VectorProgram::binary(VectorOp op, Value a, Value b) { return ternary(op, a, b, -1); }

VectorProgram::Value VectorProgram::ternary(VectorOp op, Value a, Value b, Value c) {
  return add({.op = op, .a = a, .b = b, .c = c});
}

VectorProgram::Value VectorProgram::affine(VectorOp op, Activation activation, Value a, Value b, Value c,
                                           Value d) {
  return add({.op = op, .activation = activation, .a = a, .b = b, .c = c, .d = d});
}

VectorProgram::Value VectorProgram::add(Instruction instruction) {
  // One that is the same comes behind its operands.
  const Value last = std::max({instruction.a, instruction.b, instruction.c, instruction.d});
  for (auto i = static_cast<std::size_t>(last + 1); i < nodes_.size(); ++i)
    if (nodes_[i].kind == Kind::instruction && nodes_[i].instruction == instruction)
      return static_cast<Value>(i);
  nodes_.push_back({.kind = Kind::instruction, .instruction = instruction, .strides = {}});
  return static_cast<Value>(nodes_.size() - 1);
}

void VectorProgram::store(Value value, ElementType type, Strides strides) {
  outputs_.push_back({.value = value, .type = type, .strides = std::move(strides)});
}

void VectorProgram::sum_leading(Value value) {
  outputs_.push_back({.value = value, .target = Target::sum_leading, .strides = {}});
}

void VectorProgram::sum_centred(Value value, Value x, Value centre) {
  outputs_.push_back(
      {.value = value, .target = Target::sum_centred, .strides = {}, .x = x, .centre = centre});
}

void VectorProgram::sum_planes(Value value) {
  outputs_.push_back({.value = value, .target = Target::sum_planes, .strides = {}});
}

}  // namespace superstep::kernels
