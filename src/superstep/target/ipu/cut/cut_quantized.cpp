// Cuts of operators on bytes with scales and zero points.
#include "superstep/op/product/convolution.h"
#include "superstep/target/ipu/cut/cut_rules.h"

namespace superstep::target::ipu {
namespace {

using Places = std::vector<std::int64_t>;

// x with scales and zero points: one for all, one a slice of an axis, or one a block of an axis.
Cuts quantize(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  const Shape &x = op.input(0), &scale = op.input(1);
  const bool single = scale.element_count() == 1 && scale.rank() <= 1;
  const int along = single ? -1 : normalize_axis(op.attributes->integer("axis", 1), x.rank());
  const std::int64_t block = op.attributes->integer("block_size", 0);
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (single || axis != along) {
      const std::int64_t place = !single && block > 0 ? axis : -1;
      add_cut(cuts, op, x[axis], {axis, place, place}, {axis});
    } else if (block == 0) {
      add_cut(cuts, op, x[axis], {axis, 0, 0}, {axis});
    } else if (x[axis] % block == 0 && x[axis] > block) {
      Cut cut = empty_cut(op, x[axis] / block);
      cut.inputs[0] = cut.outputs[0] = {axis, block};
      for (std::size_t i = 1; i < 3; ++i)
        if (op.has(i)) cut.inputs[i].axis = axis;
      cuts.axes.push_back(std::move(cut));
    }
  }
  return cuts;
}

// What belongs to one operand of a product: its place among the inputs, and those of its scale and zero
// point.
struct Quantized {
  std::size_t values;
  std::vector<std::size_t> numbers;
};

// Adds the axis of the numbers of an operand where they are one a row or column.
void follow_numbers(Places& inputs, const Operation& op, const Quantized& operand) {
  for (const std::size_t i : operand.numbers)
    if (op.has(i) && op.input(i).rank() == 1 && op.input(i)[0] > 1) inputs[i] = 0;
}

bool has_matrices_of_numbers(const Operation& op, const Quantized& operand) {
  for (const std::size_t i : operand.numbers)
    if (op.has(i) && op.input(i).rank() > 1) return true;
  return false;
}

Cuts matmul(const Operation& op, const Quantized& left, const Quantized& right,
            const std::vector<std::size_t>& of_result) {
  Cuts cuts;
  const int a = op.input(left.values).rank(), b = op.input(right.values).rank(), out = op.output().rank();
  if (a < 2 || b < 2 || has_matrices_of_numbers(op, left) || has_matrices_of_numbers(op, right)) return cuts;
  for (const std::size_t i : of_result)
    if (op.has(i) && op.input(i).element_count() > 1) return cuts;
  for (int axis = 0; axis < out - 1; ++axis) {
    Places inputs(op.inputs.size(), -1);
    inputs[left.values] = axis - (out - a);
    if (axis < out - 2)
      inputs[right.values] = axis - (out - b);
    else
      follow_numbers(inputs, op, left);
    add_cut(cuts, op, op.output()[axis], inputs, {axis});
  }
  Places inputs(op.inputs.size(), -1);
  inputs[right.values] = b - 1;
  follow_numbers(inputs, op, right);
  add_cut(cuts, op, op.output()[out - 1], inputs, {out - 1});
  return cuts;
}

Cuts matmul_integer(const Operation& op) { return matmul(op, {0, {2}}, {1, {3}}, {}); }
Cuts qlinear_matmul(const Operation& op) { return matmul(op, {0, {1, 2}}, {3, {4, 5}}, {6, 7}); }

// Samples, output channels and rows of images.
Cuts convolution(const Operation& op, const Quantized& kernel, std::size_t bias) {
  Cuts cuts;
  cuts.form = WindowForm::forward;
  cuts.by_cost = true;
  cuts.windows = op::conv_geometry(*op.attributes, op.input(0), op.input(kernel.values)).windows;
  add_cut(cuts, op, op.output()[0], {0}, {0});
  if (op.attributes->integer("group", 1) == 1) {
    Places inputs(op.inputs.size(), -1);
    inputs[kernel.values] = 0;
    follow_numbers(inputs, op, kernel);
    if (op.has(bias)) inputs[bias] = 0;
    add_cut(cuts, op, op.output()[1], inputs, {1});
  }
  add_window_cuts(cuts, op, 0, false, false);
  return cuts;
}

Cuts conv_integer(const Operation& op) { return convolution(op, {1, {3}}, op.inputs.size()); }
Cuts qlinear_conv(const Operation& op) { return convolution(op, {3, {4, 5}}, 8); }

}  // namespace

std::span<const CutRule> quantized_cut_rules() {
  static const CutRule rules[] = {{quantize, {"QuantizeLinear", "DequantizeLinear"}},
                                  {matmul_integer, {"MatMulInteger"}},
                                  {qlinear_matmul, {"QLinearMatMul"}},
                                  {conv_integer, {"ConvInteger"}},
                                  {qlinear_conv, {"QLinearConv"}}};
  return rules;
}

}  // namespace superstep::target::ipu
