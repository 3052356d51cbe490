// Resizing of dense tensors, and its transpose: sparse sums along one axis after the other.
#include <algorithm>

#include "superstep/op/window/resize_axis.h"
#include "superstep/target/cpu/kernels/move/resample.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

// The element of a constant input; null when it is left out.
std::expected<const Tensor*, Refusal> constant_input(const Lowering& lowering, const Node& node,
                                                     std::size_t i) {
  if (node.inputs.size() <= i || !node.inputs[i].valid()) return nullptr;
  const graph::Value& value = lowering.graph().value(node.inputs[i]);
  if (value.kind != graph::ValueKind::constant) return refuse("resampling", "the sizes are not constant");
  return &value.data;
}

using Taps = std::vector<std::vector<kernels::ResampleTap>>;

std::expected<Taps, Refusal> forward_taps(const std::vector<op::ResizeRow>& rows) {
  Taps taps;
  for (const op::ResizeRow& row : rows) {
    if (row.outside) return refuse("resampling", "elements outside the input are asked for");
    taps.emplace_back();
    for (const op::ResizeTap& tap : row.taps)
      if (tap.weight != 0) taps.back().push_back({tap.position, static_cast<float>(tap.weight)});
  }
  return taps;
}

bool keeps_lines(const Taps& taps, std::int64_t inputs) {
  if (static_cast<std::int64_t>(taps.size()) != inputs) return false;
  for (std::size_t o = 0; o < taps.size(); ++o)
    if (taps[o].size() != 1 || taps[o][0].position != static_cast<std::int64_t>(o) || taps[o][0].weight != 1)
      return false;
  return true;
}

Taps transposed(const Taps& taps, std::int64_t inputs) {
  Taps result(static_cast<std::size_t>(inputs));
  for (std::size_t o = 0; o < taps.size(); ++o)
    for (const kernels::ResampleTap& tap : taps[o])
      result[static_cast<std::size_t>(tap.position)].push_back({static_cast<std::int64_t>(o), tap.weight});
  return result;
}

// The order of the axes in memory that both tensors share.
std::optional<std::vector<int>> common_order(const Lowering& lowering, ValueId a, ValueId b) {
  const int rank = lowering.shape(a).rank();
  std::vector<int> rows(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) rows[static_cast<std::size_t>(i)] = i;
  std::vector<std::vector<int>> orders{rows};
  if (rank >= 3) orders.push_back(image_order(rank));
  for (const auto& order : orders) {
    const auto fits = [&](ValueId id) {
      return lowering.view(id).strides == dense_strides(lowering.shape(id), order);
    };
    if (fits(a) && fits(b)) return order;
  }
  return std::nullopt;
}

std::expected<std::vector<op::ResizeAxis>, Refusal> axes_of(const Lowering& lowering, const Node& node,
                                                            const Shape& large) {
  const auto roi = constant_input(lowering, node, 1), scales = constant_input(lowering, node, 2),
             sizes = constant_input(lowering, node, 3);
  for (const auto* input : {&roi, &scales, &sizes})
    if (!*input) return std::unexpected(input->error());
  return op::resize_axes(node.attributes, large, *roi, *scales, *sizes);
}

// `x`: the tensor that is resized, or its gradient.
Lowered lower_resample(Lowering& lowering, const Node& node, const Shape& resized, bool back) {
  const ValueId in = node.inputs[0], out = node.outputs[0];
  if (lowering.element_in_memory(in) != ElementType::f32 || lowering.type(out).element != ElementType::f32)
    return refuse("resampling", "only f32 is resampled");
  const auto order = common_order(lowering, in, out);
  if (!order) return refuse("resampling", "the tensors are not dense in one order of axes");
  const auto axes = axes_of(lowering, node, resized);
  if (!axes) return std::unexpected(axes.error());
  kernels::Resample resample;
  for (int axis : *order) resample.extents.push_back(lowering.shape(in)[axis]);
  for (std::size_t place = 0; place < order->size(); ++place) {
    const op::ResizeAxis& plan = (*axes)[static_cast<std::size_t>((*order)[place])];
    auto taps = forward_taps(op::resize_rows(node.attributes, plan));
    if (!taps) return std::unexpected(taps.error());
    if (keeps_lines(*taps, plan.input)) continue;
    resample.passes.push_back(
        {static_cast<int>(place), back ? transposed(*taps, plan.input) : std::move(*taps)});
  }
  // Outer axes last where tensors grow: what lies between two passes is as small, and the lines are long.
  if (!back) std::ranges::reverse(resample.passes);
  auto kernel = kernels::prepare(resample);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(in)}, {lowering.write(out)});
  return {};
}

Lowered lower_resize(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  return lower_resample(lowering, node, lowering.shape(node.inputs[0]), false);
}

Lowered lower_resize_gradient(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  return lower_resample(lowering, node, lowering.shape(node.outputs[0]), true);
}

constexpr Lowerer lowerers[] = {
    {"Resize", "resampling", lower_resize},
    {"superstep.ResizeGradient", "resampling", lower_resize_gradient},
};

}  // namespace

extern constinit const LowererFamily resample_lowerers{lowerers, Halves::in_f32};

}  // namespace superstep::target::cpu
