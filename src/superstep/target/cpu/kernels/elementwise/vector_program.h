// Chains of element-wise operations evaluated in one pass over memory.
//
// A VectorProgram is a straight-line program over f32 registers in single-assignment form: each call that
// makes a value returns its number (the same one for the same operation on the same values), values are used
// by number, and stores name what leaves. Prepared, it runs over pieces that stay in the first-level cache.
// Example, y = relu(a * x + b) with b along the last axis, and the sums of y:
//   VectorProgram p({rows, channels});
//   auto y = p.unary(VectorOp::relu, p.fma(p.input(f32, {channels, 1}), p.constant(2), p.input(f32, {0,
//   1}))); p.store(y, f32, {channels, 1}); p.sum_leading(y);
//
// Slots: one input slot an input(), one output slot a store() or sum, each in the order of the calls.
// An output may be the same tensor as an input of the same strides and type; otherwise nothing overlaps.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/epilogue.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

enum class VectorOp : std::uint8_t {
  // one operand
  neg,
  abs,
  exp,
  log,
  sqrt,
  rsqrt,
  reciprocal,
  square,
  floor,
  ceil,
  round,
  sign,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  relu,
  sigmoid,
  tanh,
  erf,
  logical_not,
  round_half,  // to f16 and back
  // one operand and constants alpha, beta
  activate,             // activation(a)
  activation_gradient,  // activation'(a): a is the activation's input
  output_gradient,      // activation'(a): a is the activation's output (gradient_from_output)
  // two operands
  add,
  sub,
  mul,
  div,
  max,
  min,
  pow,
  remainder,  // of a division that truncates, as std::fmod
  equal,
  less,
  less_or_equal,  // 1 or 0
  logical_and,
  logical_or,
  // three operands
  fma,              // a * b + c, rounded once where the processor has it
  select,           // a != 0 ? b : c
  activate_affine,  // activation(a * b + c): of a normalised value
  // four operands
  slope_affine,  // d * activation'(a * b + c)
};

const char* name_of(VectorOp op);

class VectorProgram {
 public:
  using Value = std::int32_t;
  using Strides = std::vector<std::int64_t>;  // in elements, one an axis; 0 broadcasts

  // Extents outermost first; rank 0 is one element.
  explicit VectorProgram(std::vector<std::int64_t> extents) : extents_(std::move(extents)) {}

  // Reads a tensor (next input slot) of f32, bf16, f16, f64, i8, u8, i32, i64 or bool, converted to f32.
  Value input(ElementType type, Strides strides);
  Value constant(float value);
  Value unary(VectorOp op, Value a);
  Value unary(VectorOp op, Value a, Activation activation, float alpha = 0, float beta = 0);
  Value binary(VectorOp op, Value a, Value b);
  Value ternary(VectorOp op, Value a, Value b, Value c);
  Value fma(Value a, Value b, Value c) { return ternary(VectorOp::fma, a, b, c); }
  // activate_affine and slope_affine, of those activations that has_affine() names.
  Value affine(VectorOp op, Activation activation, Value a, Value b, Value c, Value d = -1);
  static bool has_affine(Activation activation) {
    return activation == Activation::relu || activation == Activation::silu ||
           activation == Activation::hard_swish;
  }
  Value select(Value a, Value b, Value c) { return ternary(VectorOp::select, a, b, c); }

  // Writes a tensor (next output slot), rounding to nearest even; integers saturate and truncate towards
  // zero; bool is v != 0. Strides must not be 0 along an extent above 1.
  void store(Value value, ElementType type, Strides strides);
  // f32 values along the last axis: sums over all other axes (bias gradients, channel statistics).
  void sum_leading(Value value);
  // f32 values along the last two axes: sums over all others (means over the positions of images).
  void sum_planes(Value value);
  // Two rows of f32 values along the last axis: the sums of `value`, and those of value * (x - centre), over
  // all other axes. `centre` must be an input that is the same along them.
  void sum_centred(Value value, Value x, Value centre);
  // Sums along axes are then made in so many parts, for threads to share: an output holds [parts][its
  // values], and whoever reads it adds them up. The bits do not depend on who runs which part.
  void sum_in_parts(std::int64_t parts) { sum_parts_ = parts; }

  struct Instruction {
    VectorOp op;
    Activation activation = Activation::identity;
    Value a = -1, b = -1, c = -1, d = -1;
    float alpha = 0, beta = 0;
    friend bool operator==(const Instruction&, const Instruction&) = default;
  };
  enum class Kind : std::uint8_t { input, constant, instruction };
  struct Node {
    Kind kind;
    Instruction instruction;              // of Kind::instruction
    float value = 0;                      // of Kind::constant
    ElementType type = ElementType::f32;  // of Kind::input
    Strides strides;                      // of Kind::input
  };
  enum class Target : std::uint8_t { tensor, sum_leading, sum_planes, sum_centred };
  struct Output {
    Value value;
    Target target = Target::tensor;
    ElementType type = ElementType::f32;
    Strides strides;
    Value x = -1, centre = -1;  // of sum_centred
  };

  const std::vector<std::int64_t>& extents() const { return extents_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  std::int64_t sum_parts() const { return sum_parts_; }

 private:
  Value add(Instruction instruction);

  std::vector<std::int64_t> extents_;
  std::int64_t sum_parts_ = 1;
  std::vector<Node> nodes_;
  std::map<std::uint32_t, Value> constants_;  // by their bits
  std::vector<Output> outputs_;
};

// Refuses a program with a value number out of range, a stride list of the wrong length, an output that
// writes an element twice, or an operation with the wrong number of operands.
Prepared prepare(const VectorProgram& program);

}  // namespace superstep::kernels
