// Cuts of operators that read images at positions that they work out: resampling by axes, by grids and by
// regions.
#include "superstep/op/product/convolution.h"
#include "superstep/op/window/resize_axis.h"
#include "superstep/target/ipu/cut/cut_rules.h"

namespace superstep::target::ipu {
namespace {

using Rows = std::vector<op::ResizeRows>;

// Elements of the input that each row reads; one where it reads none.
std::vector<bsp::Interval> reads_of(const op::ResizeRows& rows) {
  std::vector<bsp::Interval> reads;
  for (const op::ResizeRow& row : rows) {
    bsp::Interval one{0, 1};
    for (std::size_t i = 0; i < row.taps.size(); ++i) {
      const std::int64_t position = row.taps[i].position;
      one = i == 0 ? bsp::Interval{position, position + 1}
                   : bsp::Interval{std::min(one.begin, position), std::max(one.end, position + 1)};
    }
    reads.push_back(one);
  }
  return reads;
}

// A part's rows, with positions counted in what it reads.
Rows part_rows(const Rows& rows, const Cuts& cuts, const Part& part) {
  Rows own = rows;
  for (const AxisRange& range : operand_ranges(cuts, part, false, 0)) {
    op::ResizeRows& along = own[static_cast<std::size_t>(range.axis)];
    if (!along.empty()) along = {along.begin() + range.range.begin, along.begin() + range.range.end};
  }
  for (const AxisRange& range : operand_ranges(cuts, part, true, 0))
    for (op::ResizeRow& row : own[static_cast<std::size_t>(range.axis)])
      for (op::ResizeTap& tap : row.taps) tap.position -= range.range.begin;
  return own;
}

// Every axis of the result: those that are resampled read around their rows.
Cuts resize(const Operation& op) {
  std::vector<const Tensor*> known{nullptr};
  for (std::size_t i = 1; i < op.inputs.size(); ++i) {
    if (op.has(i) && !op.constants[i]) return {};
    known.push_back(op.constants[i]);
  }
  const Rows rows = op::resize_rows_of(op.node->op, *op.attributes, op.input(0), known);
  Cuts cuts;
  cuts.even = true;
  for (int axis = 0; axis < op.output().rank(); ++axis) {
    const op::ResizeRows& along = rows[static_cast<std::size_t>(axis)];
    if (along.empty()) {
      add_cut(cuts, op, op.output()[axis], {axis}, {axis});
    } else if (along.size() > 1 && op.input(0).element_count() > 0) {
      Cut cut = empty_cut(op, op.output()[axis]);
      cut.inputs[0] = reading(axis, reads_of(along));
      cut.outputs[0].axis = axis;
      cuts.axes.push_back(std::move(cut));
    }
  }
  cuts.adapt = [rows](const Operation& operation, const Cuts& all, const Part& part, PartShape& shape) {
    for (const bool input : {true, false})
      for (const AxisRange& range : operand_ranges(all, part, input, 0))
        if (!rows[static_cast<std::size_t>(range.axis)].empty()) shape.place.push_back(range.range.begin);
    const double extrapolation = operation.attributes->number("extrapolation_value", 0);
    shape.evaluate = [own = part_rows(rows, all, part), extrapolation](const op::EvaluateContext& context) {
      op::resample(context.input(0), own, extrapolation, context.output(0));
    };
  };
  return cuts;
}

// x [N, C, ...], grid [N, ..., r]: samples, channels, and points of the grid.
Cuts grid_sample(const Operation& op) {
  Cuts cuts;
  add_cut(cuts, op, op.output()[0], {0, 0}, {0});
  add_cut(cuts, op, op.output()[1], {1, -1}, {1});
  for (int axis = 2; axis < op.output().rank(); ++axis)
    add_cut(cuts, op, op.output()[axis], {-1, axis - 1}, {axis});
  return cuts;
}

// theta [N, r, r + 1]; the known size begins with N.
Cuts affine_grid(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  add_cut(cuts, op, op.output()[0], {0}, {0});
  cuts.adapt = [](const Operation&, const Cuts&, const Part&, PartShape& shape) {
    Tensor size = shape.known[1]->clone();
    size.set(0, static_cast<double>((*shape.outputs[0])[0]));
    shape.known[1] = size;
  };
  return cuts;
}

// Regions, which may lie in any sample, and channels.
Cuts regions(const Operation& op) {
  Cuts cuts;
  const bool counted = op.attributes->has("superstep.samples_y");  // numbers of samples a region
  if (!counted) add_cut(cuts, op, op.output()[0], {-1, 0, 0}, {0});
  add_cut(cuts, op, op.output()[1], {1, -1, -1}, {1});
  return cuts;
}

// Samples and output channels; offsets reach anywhere in an image.
Cuts deformable(const Operation& op) {
  Cuts cuts;
  add_cut(cuts, op, op.output()[0], {0, -1, 0, -1, 0}, {0});
  if (op.attributes->integer("group", 1) == 1) add_cut(cuts, op, op.output()[1], {-1, 0, -1, 0, -1}, {1});
  return cuts;
}

}  // namespace

std::span<const CutRule> resample_cut_rules() {
  static const CutRule rules[] = {{resize, {"Resize", "Upsample"}, resize_cycles},
                                  {resize, {"superstep.ResizeGradient"}, resize_gradient_cycles},
                                  {grid_sample, {"GridSample"}},
                                  {affine_grid, {"AffineGrid"}},
                                  {regions, {"RoiAlign"}},
                                  {regions, {"MaxRoiPool"}, pooling_cycles},
                                  {deformable, {"DeformConv"}}};
  return rules;
}

}  // namespace superstep::target::ipu
