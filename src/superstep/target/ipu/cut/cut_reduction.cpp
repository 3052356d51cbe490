// Cuts of reductions: along what stays, every part has results of its own; along what goes, partial ones.
#include <optional>
#include <set>

#include "superstep/op/core/definition.h"
#include "superstep/target/ipu/cut/cut_rules.h"

namespace superstep::target::ipu {
namespace {

std::set<int> reduced_axes(const Operation& op) {
  const int rank = op.input(0).rank();
  std::vector<std::int64_t> axes = op.attributes->integers("axes", {});
  if (op.has(1)) {
    if (!op.constants[1]) axes.clear();
    for (std::int64_t i = 0; op.constants[1] && i < op.constants[1]->element_count(); ++i)
      axes.push_back(static_cast<std::int64_t>(op.constants[1]->at(i)));
  }
  std::set<int> result;
  for (const std::int64_t axis : axes) result.insert(normalize_axis(axis, rank));
  if (axes.empty() && op.attributes->integer("noop_with_empty_axes", 0) == 0)
    for (int axis = 0; axis < rank; ++axis) result.insert(axis);
  return result;
}

// Whether partial results of the operator can be combined, and how.
std::optional<Combine> combine_of(std::string_view op) {
  using op::Folding;
  switch (op::traits_of(op).folding) {
    case Folding::sum:
    case Folding::sum_of_absolutes:
    case Folding::sum_of_squares: return Combine::sum;
    case Folding::mean: return Combine::mean;
    case Folding::largest: return Combine::maximum;
    case Folding::smallest: return Combine::minimum;
    case Folding::product: return Combine::product;
    case Folding::root_of_squares: return Combine::root_of_squares;
    case Folding::log_of_sum:
    case Folding::log_of_exponentials:
    case Folding::none: return std::nullopt;
  }
  return std::nullopt;
}

Cuts reduction(const Operation& op) {
  Cuts cuts;
  const std::set<int> reduced = reduced_axes(op);
  const bool keep = op.attributes->integer("keepdims", 1) != 0;
  const std::optional<Combine> combine = combine_of(op.node->op);
  if (combine) cuts.combine = *combine;
  int out = 0;
  for (int axis = 0; axis < op.input(0).rank(); ++axis) {
    if (!reduced.contains(axis)) {
      add_cut(cuts, op, op.input(0)[axis], {axis, -1}, {out++});
      continue;
    }
    out += keep;
    if (combine) add_summed_cut(cuts, op, op.input(0)[axis], {axis, -1});
  }
  return cuts;
}

// Statistics of channels: x [N, C, ...]; further operands of x's shape follow it, those of [C] the channels.
Cuts channel_statistics(const Operation& op) {
  Cuts cuts;
  if (op.node->op == "superstep.ChannelMoments") cuts.combine = Combine::moments;
  const Shape& x = op.input(0);
  for (int axis = 0; axis < x.rank(); ++axis) {
    std::vector<std::int64_t> inputs;
    for (const graph::ValueType* type : op.inputs)
      inputs.push_back(!type ? -1 : type->shape == x ? axis : axis == 1 ? 0 : -1);
    if (axis == 1)
      add_cut(cuts, op, x[axis], inputs, std::vector<std::int64_t>(op.outputs.size(), 0));
    else
      add_summed_cut(cuts, op, x[axis], inputs);
  }
  return cuts;
}

// Inference scales every element by numbers of its channel; training needs whole channels.
Cuts batch_normalization(const Operation& op) {
  Cuts cuts;
  const Shape& x = op.input(0);
  if (x.rank() < 2) return cuts;
  const bool training = op.attributes->integer("training_mode", 0) != 0;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (training && axis != 1) continue;
    std::vector<std::int64_t> inputs{axis}, outputs{axis};
    inputs.insert(inputs.end(), 4, axis == 1 ? 0 : -1);
    outputs.resize(op.outputs.size(), 0);
    add_cut(cuts, op, x[axis], inputs, outputs);
  }
  return cuts;
}

// Planes [N, C] with their positions taken in.
Cuts global_pooling(const Operation& op) {
  Cuts cuts;
  const std::optional<Combine> combine = combine_of(op.node->op);
  if (combine) cuts.combine = *combine;
  for (int axis = 0; axis < op.input(0).rank(); ++axis) {
    if (axis < 2)
      add_cut(cuts, op, op.input(0)[axis], {axis}, {axis});
    else if (combine)
      add_summed_cut(cuts, op, op.input(0)[axis], {axis});
  }
  return cuts;
}

}  // namespace

std::span<const CutRule> reduction_cut_rules() {
  static const CutRule rules[] = {
      {batch_normalization, {"BatchNormalization"}, batch_normalization_cycles},
      {channel_statistics, {"superstep.ChannelMoments"}, channel_moments_cycles},
      {channel_statistics, {"superstep.ChannelSums"}, channel_sums_cycles},
      {global_pooling, {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}},
      {reduction,
       {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"},
       reduction_cycles}};
  return rules;
}

}  // namespace superstep::target::ipu
