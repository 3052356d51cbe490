// Movement of data that strides cannot say: copies into another order, joins, broadcasts.
#include <fmt/format.h>

#include "superstep/target/cpu/kernels/copy.h"
#include "superstep/target/cpu/lowering.h"

namespace superstep::target::cpu {
namespace {

Lowered copy(Lowering& lowering, const Node& node, const Shape& extents, const Strides& from,
             const Strides& to, DraftOperand source, DraftOperand target, ElementType element) {
  auto kernel = kernels::prepare(kernels::StridedCopy{.extents = extents.extents(),
                                                      .x_strides = from,
                                                      .y_strides = to,
                                                      .x_type = element,
                                                      .y_type = element});
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {std::move(source)}, {std::move(target)});
  return {};
}

Lowered lower_transpose(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const int rank = lowering.shape(x).rank();
  std::vector<std::int64_t> order;
  for (int axis = rank - 1; axis >= 0; --axis) order.push_back(axis);
  order = node.attributes.integers("perm", order);
  Strides from;
  for (std::int64_t axis : order) from.push_back(lowering.view(x).strides[static_cast<std::size_t>(axis)]);
  return copy(lowering, node, lowering.shape(y), from, lowering.view(y).strides, lowering.read(x),
              lowering.write(y), lowering.element_in_memory(x));
}

// A reshape that moves data: through one of the two shapes if its strides can say it, else through a
// row-major copy in between.
Lowered lower_reshape(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const Shape &from = lowering.shape(x), &to = lowering.shape(y);
  const ElementType element = lowering.element_in_memory(x);
  if (const auto strides = reshape_strides(to, lowering.view(y).strides, from))
    return copy(lowering, node, from, lowering.view(x).strides, *strides, lowering.read(x), lowering.write(y),
                element);
  if (const auto strides = reshape_strides(from, lowering.view(x).strides, to))
    return copy(lowering, node, to, *strides, lowering.view(y).strides, lowering.read(x), lowering.write(y),
                element);
  const DraftOperand between =
      lowering.temporary(static_cast<std::size_t>(from.element_count()) * size_in_bytes(element));
  if (Lowered first = copy(lowering, node, from, lowering.view(x).strides, from.row_major_strides(),
                           lowering.read(x), between, element);
      !first)
    return first;
  return copy(lowering, node, to, to.row_major_strides(), lowering.view(y).strides, between,
              lowering.write(y), element);
}

Lowered lower_expand(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  return copy(lowering, node, lowering.shape(y), lowering.broadcast_strides(x, lowering.shape(y)),
              lowering.view(y).strides, lowering.read(x), lowering.write(y), lowering.element_in_memory(x));
}

Lowered lower_concat(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId y = node.outputs[0];
  const int axis = normalize_axis(node.attributes.integer("axis"), lowering.shape(y).rank());
  const std::int64_t step = lowering.view(y).strides[static_cast<std::size_t>(axis)];
  const std::size_t element_bytes = size_in_bytes(lowering.type(y).element);
  const DraftOperand target = lowering.write(y);
  std::int64_t position = 0;
  for (ValueId x : node.inputs) {
    DraftOperand piece = target;
    std::visit(
        [&](auto& place) { place.offset += static_cast<std::size_t>(position * step) * element_bytes; },
        piece);
    if (Lowered done = copy(lowering, node, lowering.shape(x), lowering.view(x).strides,
                            lowering.view(y).strides, lowering.read(x), piece, lowering.element_in_memory(x));
        !done)
      return done;
    position += lowering.shape(x)[axis];
  }
  return {};
}

constexpr Lowerer lowerers[] = {
    {"Transpose", "copy", lower_transpose}, {"Reshape", "copy", lower_reshape},
    {"Flatten", "copy", lower_reshape},     {"Squeeze", "copy", lower_reshape},
    {"Unsqueeze", "copy", lower_reshape},   {"Identity", "copy", lower_reshape},
    {"Expand", "copy", lower_expand},       {"Concat", "copy", lower_concat},
};

}  // namespace

std::span<const Lowerer> data_lowerers() { return lowerers; }

}  // namespace superstep::target::cpu
