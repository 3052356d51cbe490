// Cuts of pooling and resampling: planes, and rows of images where windows slide.
#include "superstep/target/ipu/cut_rules.h"

namespace superstep::target::ipu {
namespace {

// The first axes of every operand belong to samples and channels.
Cuts planes(const Operation& op) {
  Cuts cuts;
  for (int axis = 0; axis < 2; ++axis)
    add_cut(cuts, op, op.output()[axis], std::vector<std::int64_t>(op.inputs.size(), axis),
            std::vector<std::int64_t>(op.outputs.size(), axis));
  return cuts;
}

// An average over a window that hangs over the end counts by the whole image: such images stay whole.
bool may_cut_windows(const Operation& op) {
  return op.node->op == "MaxPool" || (op.attributes->integer("ceil_mode", 0) == 0 &&
                                      op.attributes->text("auto_pad", "NOTSET") == "NOTSET");
}

Cuts windows(const Operation& op) {
  Cuts cuts = planes(op);
  if (!may_cut_windows(op)) return cuts;
  cuts.form = WindowForm::forward;
  cuts.windows = op::pooling_windows(*op.attributes, op::spatial_extents(op.input(0)));
  add_window_cuts(cuts, op, 0, false, false);
  for (Cut& cut : cuts.axes)
    if (cut.window >= 0)
      for (std::size_t i = 0; i < op.outputs.size(); ++i)
        if (op.outputs[i]) cut.outputs[i].axis = cut.window + 2;
  return cuts;
}

// The windows of the pooling whose maxima are at `indices`, when they lie side by side and fill the image.
std::vector<op::Window> windows_side_by_side(const Operation& op) {
  const graph::Node* pooling = op.producers.size() > 1 ? op.producers[1] : nullptr;
  if (!pooling || pooling->op != "MaxPool") return {};
  std::vector<op::Window> windows =
      op::pooling_windows(pooling->attributes, op::spatial_extents(op.output()));
  for (const op::Window& window : windows)
    if (window.kernel != window.stride || window.pad_begin != 0 || window.dilation != 1 ||
        window.output * window.stride != window.input)
      return {};
  return windows;
}

// Where windows do not overlap, a row of the gradient belongs to the rows of its window.
Cuts max_pool_gradient(const Operation& op) {
  Cuts cuts = planes(op);
  cuts.even = true;
  const std::vector<op::Window> windows = windows_side_by_side(op);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    if (windows[i].output <= 1) continue;
    Cut cut = empty_cut(op, windows[i].output);
    cut.inputs[0].axis = cut.inputs[1].axis = axis;
    cut.outputs[0] = {axis, windows[i].stride};
    cuts.axes.push_back(std::move(cut));
  }
  return cuts;
}

// Planes keep their scale; what says the sizes is known and follows the part (part.cpp).
Cuts resize(const Operation& op) {
  Cuts cuts;
  if (op.attributes->has("axes") || op.input(0).rank() < 3) return cuts;
  for (int axis = 0; axis < 2; ++axis) add_cut(cuts, op, op.output()[axis], {axis}, {axis});
  return cuts;
}

}  // namespace

std::span<const CutRule> pooling_cut_rules() {
  static const CutRule rules[] = {{windows, {"MaxPool", "AveragePool", "LpPool"}},
                                  {max_pool_gradient, {"superstep.MaxPoolGradient"}},
                                  {planes, {"superstep.AveragePoolGradient"}},
                                  {resize, {"Resize", "superstep.ResizeGradient"}}};
  return rules;
}

}  // namespace superstep::target::ipu
