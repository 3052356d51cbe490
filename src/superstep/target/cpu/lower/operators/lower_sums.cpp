#include "superstep/target/cpu/lower/operators/lower_sums.h"

#include <algorithm>

#include "superstep/target/cpu/lower/operators/lower_elementwise.h"
#include "superstep/target/cpu/passes/remake.h"

namespace superstep::target::cpu {
namespace {

using kernels::VectorOp;
using kernels::VectorProgram;

constexpr const char* name = "sums of a group";

// Elements that a part sums at least, and parts at most.
constexpr std::int64_t least_elements = 1 << 15, most_parts = 16;

// Positions outermost, then samples, then channels: how images lie.
bool lies_as_image(const Shape& shape, const Strides& strides) {
  const Strides image = dense_strides(shape, image_order(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] > 1 && strides[static_cast<std::size_t>(axis)] != image[static_cast<std::size_t>(axis)])
      return false;
  return true;
}

std::int64_t parts_of(const Shape& shape) {
  return std::clamp<std::int64_t>(shape.element_count() / least_elements, 1, most_parts);
}

// Adds up and scales partial sums [parts][outputs of the node][count].
Lowered emit_joined(Lowering& lowering, const Node& node, std::int64_t parts, std::int64_t count, float scale,
                    const DraftOperand& partial) {
  VectorProgram program({parts, count});
  std::vector<DraftOperand> inputs, outputs;
  for (ValueId output : node.outputs) {
    auto at = std::get<BlockOperand>(partial);
    at.offset += outputs.size() * static_cast<std::size_t>(count) * sizeof(float);
    inputs.emplace_back(at);
    const auto stride = static_cast<std::int64_t>(node.outputs.size()) * count;
    VectorProgram::Value value = program.input(ElementType::f32, {stride, 1});
    if (scale != 1) value = program.binary(VectorOp::mul, value, program.constant(scale));
    program.sum_leading(value);
    outputs.push_back(lowering.write(output));
  }
  auto kernel = kernels::prepare(program);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), std::move(inputs), std::move(outputs));
  return {};
}

// Emits the program, whose one output is the node's sums, and the step that joins its parts.
Lowered emit_sums(Lowering& lowering, const Node& node, GroupProgram made, std::int64_t count, float scale) {
  const std::int64_t parts = parts_of(lowering.shape(node.inputs[0]));
  made.program.sum_in_parts(parts);
  auto kernel = kernels::prepare(made.program);
  if (!kernel) return std::unexpected(kernel.error());
  const auto outputs = static_cast<std::int64_t>(node.outputs.size());
  const DraftOperand partial =
      lowering.temporary(static_cast<std::size_t>(parts * outputs * count) * sizeof(float));
  lowering.emit(made.ops + "+" + node.op, made.name, std::move(*kernel), std::move(made.inputs), {partial});
  return emit_joined(lowering, node, parts, count, scale, partial);
}

Lowered lower_channel_sums(Lowering& lowering, const FusionGroup& group, const Node& node) {
  const Shape& shape = lowering.shape(node.inputs[0]);
  const std::vector<int> order = image_order(shape.rank());
  auto made = program_of_group(lowering, group, order, {node.inputs[1]});
  if (!made) return std::unexpected(made.error());
  VectorProgram& program = made->program;
  kernels::VectorProgram::Strides along_channels(order.size(), 0);
  along_channels.back() = 1;
  const auto centre = program.input(ElementType::f32, along_channels);
  made->inputs.push_back(lowering.read(node.inputs[2]));
  program.sum_centred(made->root, made->read[0], centre);
  return emit_sums(lowering, node, std::move(*made), shape[1], 1);
}

Lowered lower_position_sums(Lowering& lowering, const FusionGroup& group, const Node& node) {
  const Shape& shape = lowering.shape(node.inputs[0]);
  auto made = program_of_group(lowering, group, image_order(shape.rank()));
  if (!made) return std::unexpected(made.error());
  made->program.sum_planes(made->root);
  const std::int64_t count = shape[0] * shape[1];
  const float scale =
      node.op == "ReduceSum" ? 1.0f : static_cast<float>(count) / static_cast<float>(shape.element_count());
  return emit_sums(lowering, node, std::move(*made), count, scale);
}

bool is_sum(const Lowering& lowering, const Node& node) {
  return node.op == "superstep.ChannelSums" || sums_over_positions(lowering.graph(), node);
}

// Sums are written one after the other: [channels], or [samples][channels].
bool output_is_dense(const Lowering& lowering, ValueId id) {
  return lowering.is_row_major(id) && !lowering.can_accumulate(id) &&
         lowering.type(id).element == ElementType::f32;
}

}  // namespace

bool feeds_sums(const Lowering& lowering, const FusionGroup& group) {
  if (group.product || lowering.section() != Section::body) return false;
  const ValueId result = lowering.graph().node(group.root).outputs[0];
  const auto readers = lowering.consumers(result);
  if (readers.size() != 1 || lowering.leaves_section(result)) return false;
  const Node& reader = lowering.graph().node(readers[0]);
  const Shape& shape = lowering.shape(result);
  if (!is_sum(lowering, reader) || reader.inputs[0] != result || shape.rank() < 3) return false;
  return lowering.section_of(readers[0]) == Section::body && shape.element_count() > 0 &&
         lowering.type(result).element == ElementType::f32 &&
         lies_as_image(shape, lowering.view(result).strides) &&
         std::ranges::all_of(reader.outputs, [&](ValueId id) { return output_is_dense(lowering, id); });
}

Lowered lower_sums_of_group(Lowering& lowering, const FusionGroup& group, NodeId id) {
  const Node& node = lowering.graph().node(id);
  if (node.op != "superstep.ChannelSums") return lower_position_sums(lowering, group, node);
  for (ValueId input : node.inputs)
    if (lowering.type(input).element != ElementType::f32) return refuse(name, "not all tensors are f32");
  if (node.inputs[1] == node.inputs[0]) return refuse(name, "both tensors are the same");
  return lower_channel_sums(lowering, group, node);
}

}  // namespace superstep::target::cpu
