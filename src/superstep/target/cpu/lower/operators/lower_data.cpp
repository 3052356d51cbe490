// Movement of data that strides cannot say: copies into another order, joins, broadcasts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/lower/operators/lower_elementwise.h"

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
    const std::int64_t begin = position;
    position += lowering.shape(x)[axis];
    if (lowering.view(x).root == y) continue;  // its producer wrote it here
    DraftOperand piece = target;
    std::visit([&](auto& place) { place.offset += static_cast<std::size_t>(begin * step) * element_bytes; },
               piece);
    if (Lowered done = copy(lowering, node, lowering.shape(x), lowering.view(x).strides,
                            lowering.view(y).strides, lowering.read(x), piece, lowering.element_in_memory(x));
        !done)
      return done;
  }
  return {};
}

DraftOperand shifted(DraftOperand operand, std::int64_t elements, ElementType element) {
  std::visit(
      [&](auto& place) { place.offset += static_cast<std::size_t>(elements) * size_in_bytes(element); },
      operand);
  return operand;
}

// Parts that cannot stay where they are are copied out.
Lowered lower_cuts(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0];
  const Strides& strides = lowering.view(x).strides;
  const auto cuts = cuts_of(lowering.graph(), node, strides);
  if (!cuts) return refuse("copy", "places are not constant");
  for (std::size_t i = 0; i < cuts->size(); ++i) {
    const ValueId y = node.outputs[i];
    Strides from = strides;
    for (std::size_t axis = 0; axis < from.size(); ++axis) from[axis] *= (*cuts)[i].steps[axis];
    const ElementType element = lowering.element_in_memory(x);
    if (Lowered done =
            copy(lowering, node, lowering.shape(y), from, lowering.view(y).strides,
                 shifted(lowering.read(x), (*cuts)[i].offset, element), lowering.write(y), element);
        !done)
      return done;
  }
  return {};
}

// Blocks of channels side by side: axes [N, C, H, by, W, bx] of both, in strides of their own.
Lowered lower_depth_to_space(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const Shape& shape = lowering.shape(x);
  const Strides &from = lowering.view(x).strides, &to = lowering.view(y).strides;
  const std::int64_t block = node.attributes.integer("blocksize"), channels = lowering.shape(y)[1];
  const bool blocks_first = node.attributes.text("mode", "DCR") == "DCR";
  const std::int64_t of_channel = from[1] * (blocks_first ? 1 : block * block),
                     of_column = from[1] * (blocks_first ? channels : 1);
  return copy(lowering, node, {shape[0], channels, shape[2], block, shape[3], block},
              {from[0], of_channel, from[2], of_column * block, from[3], of_column},
              {to[0], to[1], to[2] * block, to[2], to[3] * block, to[3]}, lowering.read(x), lowering.write(y),
              lowering.element_in_memory(x));
}

// What Pad copies of x: where it begins there and in the result, in elements.
struct PaddedCopy {
  Shape extents;
  std::int64_t from = 0, to = 0;
  std::vector<std::array<std::int64_t, 2>> around;  // places of the result before and after it, an axis each
  bool fills() const {
    return std::ranges::any_of(around, [](const auto& sides) { return sides[0] > 0 || sides[1] > 0; });
  }
};

// Negative pads cut off.
PaddedCopy padded_copy(const Lowering& lowering, const Node& node) {
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const Tensor& pads = lowering.graph().value(node.inputs[1]).data;
  std::vector<std::int64_t> extents = lowering.shape(x).extents();
  PaddedCopy result;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const auto before = static_cast<std::int64_t>(pads.at(static_cast<std::int64_t>(axis))),
               after = static_cast<std::int64_t>(pads.at(static_cast<std::int64_t>(axis + extents.size())));
    const std::int64_t cut = std::min<std::int64_t>(0, before) + std::min<std::int64_t>(0, after);
    extents[axis] = std::max<std::int64_t>(0, extents[axis] + cut);
    result.from += std::max<std::int64_t>(0, -before) * lowering.view(x).strides[axis];
    result.to += std::max<std::int64_t>(0, before) * lowering.view(y).strides[axis];
    result.around.push_back({std::max<std::int64_t>(0, before), std::max<std::int64_t>(0, after)});
  }
  result.extents = Shape(extents);
  return result;
}

// Whether a program of f32 stores the number as it is, or rounded once.
bool is_stored_exactly(double value, ElementType element) {
  const bool narrow = is_floating(element) && element != ElementType::f64;
  return narrow || static_cast<double>(static_cast<float>(value)) == value;
}

// The number at `extents` places of y, `offset` elements behind its first.
Lowered fill(Lowering& lowering, const Node& node, double value, const std::vector<std::int64_t>& extents,
             std::int64_t offset) {
  const ValueId y = node.outputs[0];
  const ElementType element = lowering.type(y).element;
  kernels::VectorProgram program(extents);
  program.store(program.constant(static_cast<float>(value)), element, lowering.view(y).strides);
  auto kernel = kernels::prepare(program);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit("fill", node.name, std::move(*kernel), {}, {shifted(lowering.write(y), offset, element)});
  return {};
}

// Slabs before and after the copied part, axis by axis; all of y where nothing is copied.
Lowered fill_around(Lowering& lowering, const Node& node, double value, const PaddedCopy& part) {
  const Shape& shape = lowering.shape(node.outputs[0]);
  if (part.extents.element_count() == 0) return fill(lowering, node, value, shape.extents(), 0);
  for (std::size_t axis = 0; axis < part.around.size(); ++axis)
    for (const bool after : {false, true}) {
      std::vector<std::int64_t> extents = shape.extents();
      const std::int64_t whole = std::exchange(extents[axis], part.around[axis][after]);
      if (extents[axis] == 0) continue;
      const std::int64_t first = after ? whole - extents[axis] : 0;
      const std::int64_t offset = first * lowering.view(node.outputs[0]).strides[axis];
      if (Lowered done = fill(lowering, node, value, extents, offset); !done) return done;
    }
  return {};
}

// Zeros (or another constant) around a copy of x.
Lowered lower_pad(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  if (node.attributes.text("mode", "constant") != "constant")
    return refuse("copy", "the padding is not constant");
  if (node.inputs.size() < 2 || lowering.graph().value(node.inputs[1]).kind != graph::ValueKind::constant ||
      (node.inputs.size() > 3 && node.inputs[3].valid()))
    return refuse("copy", "the pads are not constant, or of some axes only");
  double value = 0;
  if (node.inputs.size() > 2 && node.inputs[2].valid()) {
    const auto given = uniform_constant(lowering.graph(), node.inputs[2]);
    if (!given) return refuse("copy", "the padding is not constant");
    value = *given;
  }
  const PaddedCopy part = padded_copy(lowering, node);
  const Strides &from = lowering.view(x).strides, &to = lowering.view(y).strides;
  const ElementType element = lowering.element_in_memory(x);
  if (part.fills()) {
    if (!is_stored_exactly(value, element)) return refuse("copy", "the padding is no number of f32");
    if (Lowered filled = fill_around(lowering, node, value, part); !filled) return filled;
  }
  if (part.extents.element_count() == 0) return {};
  return copy(lowering, node, part.extents, from, to, shifted(lowering.read(x), part.from, element),
              shifted(lowering.write(y), part.to, element), element);
}

constexpr Lowerer lowerers[] = {
    {"Transpose", "copy", lower_transpose},
    {"Reshape", "copy", lower_reshape},
    {"Flatten", "copy", lower_reshape},
    {"Squeeze", "copy", lower_reshape},
    {"Unsqueeze", "copy", lower_reshape},
    {"Identity", "copy", lower_reshape},
    {"Expand", "copy", lower_expand},
    {"Concat", "copy", lower_concat},
    {"Slice", "copy", lower_cuts},
    {"Split", "copy", lower_cuts},
    {"DepthToSpace", "copy", lower_depth_to_space},
    {"Pad", "copy", lower_pad},
};

}  // namespace

extern constinit const LowererFamily data_lowerers{lowerers};

}  // namespace superstep::target::cpu
