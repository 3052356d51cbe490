// Pooling and its gradients.
#include <algorithm>

#include "superstep/target/cpu/kernels/move/pool.h"
#include "superstep/target/cpu/kernels/move/pool_places.h"
#include "superstep/target/cpu/lower/image_operands.h"

namespace superstep::target::cpu {
namespace {

// Rounding the number of windows up (`ceil_mode`) can make a last one that does.
bool reaches_past_padding(const op::Window& axis) {
  const std::int64_t end = (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
  return end > axis.input + axis.pad_begin + axis.pad_end;
}

std::expected<kernels::Pool, Refusal> describe(const Lowering& lowering, const Node& node, ValueId x,
                                               ValueId y) {
  const auto image_x = as_image(lowering, x), image_y = as_image(lowering, y);
  if (!image_x) return std::unexpected(image_x.error());
  if (!image_y) return std::unexpected(image_y.error());
  const std::vector<op::Window> axes = windows_of(lowering.graph(), node);
  const bool padded =
      std::ranges::any_of(axes, [](const op::Window& w) { return w.pad_begin > 0 || w.pad_end > 0; });
  const bool counts_padding = padded && node.attributes.integer("count_include_pad", 0) != 0;
  if (counts_padding && std::ranges::any_of(axes, reaches_past_padding))
    return refuse("pooling", "windows that reach past the padding, which they do not count");
  kernels::Pool pool{.x = *image_x, .y = *image_y, .window = window_of(lowering.graph(), node)};
  if (node.op != "MaxPool")
    pool.pooling = counts_padding ? kernels::Pooling::average_with_padding : kernels::Pooling::average;
  return pool;
}

std::expected<kernels::KernelPointer, Refusal> prepare_max_gradient(const Lowering& lowering,
                                                                    const Node& forward,
                                                                    const Node& gradient) {
  auto pool = describe(lowering, forward, gradient.outputs[0], gradient.inputs[0]);
  if (!pool) return std::unexpected(pool.error());
  pool->save_argmax = true;
  return kernels::prepare_pool_gradient(*pool);
}

// The winners' positions matter only to gradients: then one byte each, the number of the tap, will do, if
// there is a kernel that reads it.
bool only_gradients_read(const Lowering& lowering, const Node& forward) {
  for (NodeId id : lowering.consumers(forward.outputs[1])) {
    const Node& reader = lowering.graph().node(id);
    if (reader.op != "superstep.MaxPoolGradient" || !prepare_max_gradient(lowering, forward, reader))
      return false;
  }
  return !lowering.leaves_section(forward.outputs[1]);
}

// With the places of the maxima, which others than gradients read.
Lowered lower_pool_with_places(Lowering& lowering, const Node& node, const kernels::Pool& pool) {
  if (node.attributes.integer("storage_order", 0) != 0)
    return refuse("pooling", "places are counted down columns");
  const Strides& strides = lowering.view(node.outputs[1]).strides;
  const auto from_the_end = [&](std::size_t i) {
    return strides.size() > i + 2 ? strides[strides.size() - i - 1] : 0;
  };
  auto kernel = kernels::prepare(kernels::PoolPlaces{.pool = pool,
                                                     .batch = strides[0],
                                                     .channel = strides[1],
                                                     .plane = from_the_end(2),
                                                     .row = from_the_end(1),
                                                     .column = from_the_end(0)});
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(node.inputs[0])},
                {lowering.write(node.outputs[0]), lowering.write(node.outputs[1])});
  return {};
}

Lowered lower_pool(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  auto pool = describe(lowering, node, node.inputs[0], node.outputs[0]);
  if (!pool) return std::unexpected(pool.error());
  const bool has_indices = node.outputs.size() > 1 && node.outputs[1].valid();
  if (has_indices && !only_gradients_read(lowering, node))
    return lower_pool_with_places(lowering, node, *pool);
  pool->save_argmax = has_indices;
  auto kernel = kernels::prepare_pool(*pool);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> outputs{lowering.write(node.outputs[0])};
  if (has_indices) {
    outputs.push_back(lowering.write(node.outputs[1]));
    lowering.note_tap_numbers(node.outputs[1], id);
  }
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(node.inputs[0])}, std::move(outputs));
  return {};
}

Lowered lower_max_gradient(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto forward = lowering.tap_numbers_of(node.inputs[1]);
  if (!forward) return refuse("pooling gradient", "the forward pass kept indices, not tap numbers");
  auto kernel = prepare_max_gradient(lowering, lowering.graph().node(*forward), node);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel),
                {lowering.read(node.inputs[0]), lowering.read(node.inputs[1])},
                {lowering.write(node.outputs[0])});
  return {};
}

Lowered lower_average_gradient(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto pool = describe(lowering, node, node.outputs[0], node.inputs[0]);
  if (!pool) return std::unexpected(pool.error());
  auto kernel = kernels::prepare_pool_gradient(*pool);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(node.inputs[0])},
                {lowering.write(node.outputs[0])});
  return {};
}

constexpr Lowerer lowerers[] = {
    {"MaxPool", "pooling", lower_pool},
    {"AveragePool", "pooling", lower_pool},
    {"GlobalAveragePool", "pooling", lower_pool},
    {"superstep.MaxPoolGradient", "pooling gradient", lower_max_gradient},
    {"superstep.AveragePoolGradient", "pooling gradient", lower_average_gradient},
};

}  // namespace

extern constinit const LowererFamily pooling_lowerers{lowerers, Halves::in_f32};

}  // namespace superstep::target::cpu
