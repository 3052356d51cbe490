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
  return op.node->op == "MaxPool" ||
         (op.attributes->integer("ceil_mode", 0) == 0 && op.attributes->text("auto_pad", "NOTSET") == "NOTSET");
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

// Planes keep their scale; what says the sizes is known and follows the part (part.cpp).
Cuts resize(const Operation& op) {
  Cuts cuts;
  if (op.attributes->has("axes") || op.input(0).rank() < 3) return cuts;
  for (int axis = 0; axis < 2; ++axis) add_cut(cuts, op, op.output()[axis], {axis}, {axis});
  return cuts;
}

}  // namespace

std::span<const CutRule> pooling_cut_rules() {
  static const CutRule rules[] = {
      {windows, {"MaxPool", "AveragePool", "LpPool"}},
      {planes, {"superstep.MaxPoolGradient", "superstep.AveragePoolGradient"}},
      {resize, {"Resize", "superstep.ResizeGradient"}}};
  return rules;
}

}  // namespace superstep::target::ipu
