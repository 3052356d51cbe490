// Layer normalisation over contiguous lines, and sums over everything but the channels.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/rows/channel_statistics.h"
#include "superstep/target/cpu/kernels/rows/layer_normalization.h"
#include "superstep/target/cpu/lower/image_operands.h"

namespace superstep::target::cpu {
namespace {

// ---- lines -------------------------------------------------------------------------------------------

// The lines of a shape from `axis` on.
kernels::LayerNormalization extents_of_lines(const Shape& shape, const Node& node) {
  kernels::LayerNormalization lines;
  for (int i = normalize_axis(node.attributes.integer("axis", -1), shape.rank()); i < shape.rank(); ++i)
    lines.length *= shape[i];
  lines.rows = shape.element_count() / std::max<std::int64_t>(1, lines.length);
  lines.epsilon = static_cast<float>(node.attributes.number("epsilon", 1e-5));
  return lines;
}

// The lines of x from `axis` on: contiguous, in whatever order they follow each other.
std::expected<kernels::LayerNormalization, Refusal> lines_of(const Lowering& lowering, const Node& node,
                                                             ValueId x, std::span<const ValueId> others) {
  const Shape& shape = lowering.shape(x);
  const Strides &strides = lowering.view(x).strides, dense = shape.row_major_strides();
  const int axis = normalize_axis(node.attributes.integer("axis", -1), shape.rank());
  for (int i = axis; i < shape.rank(); ++i)
    if (const auto at = static_cast<std::size_t>(i); shape[i] > 1 && strides[at] != dense[at])
      return refuse("layer normalization", "a line is not contiguous in memory");
  if (!is_dense(shape, strides)) return refuse("layer normalization", "the tensor is not dense");
  for (ValueId other : others)
    if (lowering.view(other).strides != strides)
      return refuse("layer normalization", "the tensors differ in layout");
  return extents_of_lines(shape, node);
}

bool all_f32(const Lowering& lowering, std::span<const ValueId> values) {
  return std::ranges::all_of(
      values, [&](ValueId id) { return !id.valid() || lowering.element_in_memory(id) == ElementType::f32; });
}

// A row-major value beside one that lies otherwise, and the copy between them.
DraftOperand row_major_beside(Lowering& lowering, ValueId id) {
  return lowering.temporary(static_cast<std::size_t>(lowering.shape(id).element_count()) * sizeof(float));
}
kernels::Prepared copy_between(const Shape& shape, const Strides& from, const Strides& to) {
  return kernels::prepare(
      kernels::StridedCopy{.extents = shape.extents(), .x_strides = from, .y_strides = to});
}

// Lines of a part of a tensor, or with other axes between their elements: normalised in row-major order,
// through copies of what lies otherwise.
Lowered normalize_copies(Lowering& lowering, const Node& node, std::vector<DraftOperand> inputs,
                         kernels::LayerNormalization lines) {
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const Shape& shape = lowering.shape(x);
  const Strides dense = shape.row_major_strides();
  auto kernel = kernels::prepare_layer_normalization(lines);
  if (!kernel) return std::unexpected(kernel.error());
  auto before = copy_between(shape, lowering.view(x).strides, dense);
  if (!before) return std::unexpected(before.error());
  auto behind = copy_between(shape, dense, lowering.view(y).strides);
  if (!behind) return std::unexpected(behind.error());
  if (!lowering.is_row_major(x)) {
    const DraftOperand gathered = row_major_beside(lowering, x);
    lowering.emit("copy", node.name, std::move(*before), {lowering.read(x)}, {gathered});
    inputs[0] = gathered;
  }
  if (lowering.is_row_major(y)) {
    lowering.emit(node.op, node.name, std::move(*kernel), std::move(inputs), {lowering.write(y)});
    return {};
  }
  const DraftOperand normalized = row_major_beside(lowering, y);
  lowering.emit(node.op, node.name, std::move(*kernel), std::move(inputs), {normalized});
  lowering.emit("copy", node.name, std::move(*behind), {normalized}, {lowering.write(y)});
  return {};
}

// Scale and bias are one value an element of a line.
bool has_line_parameters(const Lowering& lowering, const Node& node, std::int64_t length) {
  for (std::size_t i = 1; i < node.inputs.size(); ++i)
    if (const ValueId input = node.inputs[i]; input.valid())
      if (lowering.shape(input).element_count() != length || !lowering.is_row_major(input)) return false;
  return true;
}

Lowered lower_layer_normalization(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  for (std::size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i].valid() &&
        (!lowering.consumers(node.outputs[i]).empty() || lowering.leaves_section(node.outputs[i])))
      return refuse("layer normalization", "the statistics are asked for");
  if (!all_f32(lowering, node.inputs)) return refuse("layer normalization", "not all tensors are f32");
  kernels::LayerNormalization lines = extents_of_lines(lowering.shape(x), node);
  lines.bias = node.inputs.size() > 2 && node.inputs[2].valid();
  if (!has_line_parameters(lowering, node, lines.length))
    return refuse("layer normalization", "scale or bias are not one value per element of a line");
  std::vector<DraftOperand> inputs;
  for (ValueId input : node.inputs)
    if (input.valid()) inputs.push_back(lowering.read(input));
  const ValueId others[] = {y};
  if (!lines_of(lowering, node, x, others)) return normalize_copies(lowering, node, std::move(inputs), lines);
  auto kernel = kernels::prepare_layer_normalization(lines);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), std::move(inputs), {lowering.write(y)});
  return {};
}

// The gradient in row-major order, through copies of what lies otherwise: dy, x, and dx.
Lowered differentiate_copies(Lowering& lowering, const Node& node, kernels::KernelPointer kernel,
                             std::vector<DraftOperand> inputs, std::vector<DraftOperand> outputs) {
  const ValueId places[] = {node.inputs[0], node.inputs[1], node.outputs[0]};
  const Shape& shape = lowering.shape(places[0]);
  const Strides dense = shape.row_major_strides();
  std::vector<kernels::KernelPointer> copies;
  for (std::size_t i = 0; i < 3; ++i) {
    const Strides& strides = lowering.view(places[i]).strides;
    auto copy = i < 2 ? copy_between(shape, strides, dense) : copy_between(shape, dense, strides);
    if (!copy) return std::unexpected(copy.error());
    copies.push_back(std::move(*copy));
  }
  for (const std::size_t i : {0u, 1u}) {
    if (lowering.is_row_major(places[i])) continue;
    const DraftOperand gathered = row_major_beside(lowering, places[i]);
    lowering.emit("copy", node.name, std::move(copies[i]), {inputs[i]}, {gathered});
    inputs[i] = gathered;
  }
  const DraftOperand dx = outputs[0];
  const bool scattered = !lowering.is_row_major(places[2]);
  if (scattered) outputs[0] = row_major_beside(lowering, places[2]);
  const DraftOperand made = outputs[0];
  lowering.emit(node.op, node.name, std::move(kernel), std::move(inputs), std::move(outputs));
  if (scattered) lowering.emit("copy", node.name, std::move(copies[2]), {made}, {dx});
  return {};
}

Lowered lower_layer_gradient(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId others[] = {node.inputs[0], node.outputs[0]};
  if (!all_f32(lowering, node.inputs)) return refuse("layer normalization", "not all tensors are f32");
  if (!lowering.is_row_major(node.inputs[2]))
    return refuse("layer normalization", "the scale is not row-major");
  for (std::size_t i : {1u, 2u})
    if (!lowering.is_row_major(node.outputs[i]))
      return refuse("layer normalization", "a sum is not row-major");
  const auto lines = lines_of(lowering, node, node.inputs[1], others);
  auto kernel = kernels::prepare_layer_normalization_gradient(
      lines ? *lines : extents_of_lines(lowering.shape(node.inputs[1]), node));
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs, outputs;
  for (ValueId input : node.inputs) inputs.push_back(lowering.read(input));
  for (ValueId output : node.outputs) outputs.push_back(lowering.write(output));
  if (!lines)
    return differentiate_copies(lowering, node, std::move(*kernel), std::move(inputs), std::move(outputs));
  lowering.emit(node.op, node.name, std::move(*kernel), std::move(inputs), std::move(outputs));
  return {};
}

// ---- channels ----------------------------------------------------------------------------------------

// All positions of an image as equally spaced rows of channels: the distance of the rows.
std::expected<std::int64_t, Refusal> distance_of_rows(const Lowering& lowering, ValueId id) {
  const auto image = as_image(lowering, id);
  if (!image) return std::unexpected(image.error());
  if (image->type != ElementType::f32) return refuse("channel statistics", "the input is not f32");
  if (!image->rows_join()) return refuse("channel statistics", "the rows of the image have gaps");
  return image->column_stride;
}

Lowered lower_channel_statistics(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const bool moments = node.op == "superstep.ChannelMoments";
  const Shape& shape = lowering.shape(node.inputs[0]);
  const auto a = distance_of_rows(lowering, node.inputs[0]);
  if (!a) return std::unexpected(a.error());
  const auto b = moments ? a : distance_of_rows(lowering, node.inputs[1]);
  if (!b) return std::unexpected(b.error());
  const kernels::ChannelStatistics statistics{
      .rows = shape.element_count() / std::max<std::int64_t>(1, shape[1]),
      .channels = shape[1],
      .a_stride = *a,
      .b_stride = *b};
  auto kernel =
      moments ? kernels::prepare_channel_moments(statistics) : kernels::prepare_channel_sums(statistics);
  if (!kernel) return std::unexpected(kernel.error());
  std::vector<DraftOperand> inputs, outputs;
  for (ValueId input : node.inputs) inputs.push_back(lowering.read(input));
  for (ValueId output : node.outputs) outputs.push_back(lowering.write(output));
  lowering.emit(node.op, node.name, std::move(*kernel), std::move(inputs), std::move(outputs));
  return {};
}

constexpr Lowerer lowerers[] = {
    {"LayerNormalization", "layer normalization", lower_layer_normalization},
    {"superstep.LayerNormalizationGradient", "layer normalization gradient", lower_layer_gradient},
    {"superstep.ChannelMoments", "channel statistics", lower_channel_statistics},
    {"superstep.ChannelSums", "channel statistics", lower_channel_statistics},
};

}  // namespace

extern constinit const LowererFamily normalization_lowerers{lowerers, Halves::in_f32};

}  // namespace superstep::target::cpu
