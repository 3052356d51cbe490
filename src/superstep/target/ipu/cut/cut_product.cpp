// Cuts of products: matrix products and the three passes of a convolution.
#include "superstep/op/product/convolution.h"
#include "superstep/target/ipu/cut/cut_rules.h"

namespace superstep::target::ipu {
namespace {

void set_role(Cut* cut, CutRole role) {
  if (cut) cut->role = role;
}

Cuts matmul(const Operation& op) {
  Cuts cuts;
  const int a = op.input(0).rank(), b = op.input(1).rank(), out = op.output().rank();
  if (a < 2 || b < 2) return cuts;
  for (int axis = 0; axis < out - 2; ++axis) {
    const int of_b = axis - (out - b);
    const bool group = of_b >= 0 && op.input(1)[of_b] > 1;
    set_role(add_cut(cuts, op, op.output()[axis], {axis - (out - a), of_b}, {axis}),
             group ? CutRole::group : CutRole::row);
  }
  set_role(add_cut(cuts, op, op.output()[out - 2], {a - 2, -1}, {out - 2}), CutRole::row);
  set_role(add_cut(cuts, op, op.output()[out - 1], {-1, b - 1}, {out - 1}), CutRole::output);
  add_summed_cut(cuts, op, op.input(0)[a - 1], {a - 1, b - 2});
  return cuts;
}

Cuts gemm(const Operation& op) {
  Cuts cuts;
  const bool ta = op.attributes->integer("transA", 0) != 0, tb = op.attributes->integer("transB", 0) != 0;
  const int c = op.has(2) ? op.input(2).rank() : 0;
  set_role(add_cut(cuts, op, op.output()[0], {ta ? 1 : 0, -1, c - 2}, {0}), CutRole::row);
  set_role(add_cut(cuts, op, op.output()[1], {-1, tb ? 0 : 1, c - 1}, {1}), CutRole::output);
  if (Cut* summed = add_summed_cut(cuts, op, op.input(0)[ta ? 0 : 1], {ta ? 0 : 1, tb ? 1 : 0}))
    summed->once = {2};
  return cuts;
}

// Groups of a grouped convolution: whole groups go to a part.
void add_groups(Cuts& cuts, const Operation& op, std::int64_t group, const std::vector<int>& inputs,
                int output) {
  Cut cut = empty_cut(op, group);
  cut.attribute = "group";
  cut.role = CutRole::group;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (op.has(i)) cut.inputs[i] = {inputs[i], op.input(i)[inputs[i]] / group};
  cut.outputs[0] = {output, op.output()[output] / group};
  cuts.axes.push_back(std::move(cut));
}

// Positions of the kernel, which lies along the last axes of input or output `operand`. Parts that the result
// does not follow make partial sums, of which the first has the bias.
void add_kernel_cuts(Cuts& cuts, const Operation& op, std::size_t operand, bool is_input) {
  for (std::size_t i = 0; i < cuts.windows.size(); ++i) {
    if (cuts.windows[i].kernel <= 1) continue;
    Cut cut = empty_cut(op, cuts.windows[i].kernel);
    (is_input ? cut.inputs : cut.outputs)[operand].axis = static_cast<int>(i) + 2;
    cut.taps = static_cast<int>(i);
    cut.role = CutRole::tap;
    cut.summed = is_input;
    if (is_input) cut.once = {2};
    cuts.axes.push_back(std::move(cut));
  }
}

// Samples, outputs, positions, inputs and kernel of Conv (`out_axis` 0) or ConvTranspose (1): where the
// weights have their outputs.
Cuts convolution(const Operation& op, int out_axis, WindowForm form, std::vector<op::Window> windows) {
  Cuts cuts;
  cuts.form = form;
  cuts.windows = std::move(windows);
  const std::int64_t group = op.attributes->integer("group", 1);
  set_role(add_cut(cuts, op, op.output()[0], {0, -1, -1}, {0}), CutRole::row);
  if (group == 1)
    set_role(add_cut(cuts, op, op.output()[1], {-1, out_axis, 0}, {1}), CutRole::output);
  else
    add_groups(cuts, op, group, {1, 0, 0}, 1);
  add_window_cuts(cuts, op, 0, false, false);
  if (group == 1)
    if (Cut* summed = add_summed_cut(cuts, op, op.input(0)[1], {1, 1 - out_axis})) summed->once = {2};
  add_kernel_cuts(cuts, op, 1, true);
  return cuts;
}

Cuts conv(const Operation& op) {
  return convolution(op, 0, WindowForm::forward,
                     op::conv_geometry(*op.attributes, op.input(0), op.input(1)).windows);
}

Cuts conv_transpose(const Operation& op) {
  return convolution(op, 1, WindowForm::transposed,
                     op::conv_transpose_geometry(*op.attributes, op.input(0), op.input(1)).windows);
}

// The result is the kernel; samples and positions are summed over.
Cuts conv_weight_gradient(const Operation& op) {
  Cuts cuts;
  cuts.form = WindowForm::gradient;
  cuts.windows = op::conv_geometry(*op.attributes, op.input(0), op.output()).windows;
  const std::int64_t group = op.attributes->integer("group", 1);
  if (group == 1) {
    set_role(add_cut(cuts, op, op.output()[0], {-1, 1}, {0}), CutRole::output);
    set_role(add_cut(cuts, op, op.output()[1], {1, -1}, {1}), CutRole::row);
  } else {
    add_groups(cuts, op, group, {1, 1}, 0);
  }
  add_summed_cut(cuts, op, op.input(0)[0], {0, 0});
  add_window_cuts(cuts, op, 1, true, true);
  add_kernel_cuts(cuts, op, 0, false);
  return cuts;
}

}  // namespace

std::span<const CutRule> product_cut_rules() {
  static const CutRule rules[] = {
      {matmul, {"MatMul"}, matmul_cycles},
      {gemm, {"Gemm"}, gemm_cycles},
      {conv, {"Conv"}, conv_cycles},
      {conv_transpose, {"ConvTranspose"}, conv_transpose_cycles},
      {conv_weight_gradient, {"superstep.ConvWeightGradient"}, conv_weight_gradient_cycles}};
  return rules;
}

}  // namespace superstep::target::ipu
