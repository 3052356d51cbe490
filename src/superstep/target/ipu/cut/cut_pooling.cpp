// Cuts of pooling and resampling: planes, and rows of images where windows slide.
#include "superstep/op/core/definition.h"
#include "superstep/target/ipu/cut/cut_rules.h"
#include "superstep/target/ipu/lower/vertex.h"

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

// Windows that lie side by side and fill the image: a row of the gradient belongs to the rows of its window.
void add_windows_side_by_side(Cuts& cuts, const Operation& op, std::size_t inputs,
                              const std::vector<op::Window>& windows) {
  for (const op::Window& window : windows)
    if (window.kernel != window.stride || window.pad_begin != 0 || window.dilation != 1 ||
        window.output * window.stride != window.input)
      return;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    if (windows[i].output <= 1) continue;
    Cut cut = empty_cut(op, windows[i].output);
    for (std::size_t k = 0; k < inputs; ++k) cut.inputs[k].axis = axis;
    cut.outputs[0] = {axis, windows[i].stride};
    cuts.axes.push_back(std::move(cut));
  }
}

Cuts max_pool_gradient(const Operation& op) {
  Cuts cuts = planes(op);
  cuts.even = true;
  const graph::Node* pooling = op.producers.size() > 1 ? op.producers[1] : nullptr;
  if (pooling && pooling->op == "MaxPool")
    add_windows_side_by_side(cuts, op, 2,
                             op::pooling_windows(pooling->attributes, op::spatial_extents(op.output())));
  return cuts;
}

// Windows side by side: rows of the gradient belong to one window.
Cuts average_pool_gradient(const Operation& op) {
  Cuts cuts = planes(op);
  cuts.even = true;
  add_windows_side_by_side(cuts, op, 1,
                           op::pooling_windows(*op.attributes, op::spatial_extents(op.output())));
  return cuts;
}

// Places are counted in the whole of what the windows cover; planes have their own.
void unpool_at_its_place(const Operation& operation, const Cuts& cuts, const Part& part, PartShape& shape) {
  const op::Definition& definition = op::get("MaxUnpool");
  const op::InferContext context{*operation.attributes, {operation.inputs[0], operation.inputs[1]}, {}, 1};
  PlaceBox box;
  box.whole = definition.infer(context)[0].shape.extents();
  box.part = box.whole;
  box.begin.assign(box.whole.size(), 0);
  for (const AxisRange& range : operand_ranges(cuts, part, true, 0)) {
    const auto axis = static_cast<std::size_t>(range.axis);
    box.begin[axis] = range.range.begin;
    box.part[axis] = range.range.size();
  }
  shape.place = box.begin;
  std::vector<std::int64_t> extents = shape.outputs[0]->extents();
  Tensor size = Tensor::from(Shape{static_cast<std::int64_t>(extents.size())}, extents);
  shape.evaluate = [box, size, &definition](const op::EvaluateContext& whole) {
    Tensor places = whole.input(1).clone();
    for (std::int64_t& place : places.as<std::int64_t>()) place = box.to_part(place);
    definition.evaluate({whole.attributes, {whole.inputs[0], &places, &size}, whole.outputs});
  };
}

Cuts max_unpool(const Operation& op) {
  Cuts cuts;
  if (op.inputs[1]->element != ElementType::i64) return cuts;
  cuts.even = true;
  cuts.adapt = unpool_at_its_place;
  for (int axis = 0; axis < 2; ++axis) add_cut(cuts, op, op.output()[axis], {axis, axis}, {axis});
  return cuts;
}

// Blocks [N, C block, L] into images [N, C, ...].
Cuts col2im(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  add_cut(cuts, op, op.output()[0], {0}, {0});
  if (op.output()[1] < 2) return cuts;
  Cut cut = empty_cut(op, op.output()[1]);
  cut.inputs[0] = {1, op.input(0)[1] / op.output()[1]};
  cut.outputs[0].axis = 1;
  cuts.axes.push_back(std::move(cut));
  return cuts;
}

}  // namespace

std::span<const CutRule> pooling_cut_rules() {
  static const CutRule rules[] = {
      {windows, {"MaxPool", "AveragePool", "LpPool"}, pooling_cycles},
      {max_pool_gradient, {"superstep.MaxPoolGradient"}, max_pool_gradient_cycles},
      {average_pool_gradient, {"superstep.AveragePoolGradient"}, average_pool_gradient_cycles},
      {max_unpool, {"MaxUnpool"}},
      {col2im, {"Col2Im"}}};
  return rules;
}

}  // namespace superstep::target::ipu
