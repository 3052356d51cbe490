// What goes along one axis: running sums, places of extremes, the largest few.
#include "superstep/target/cpu/kernels/rows/lines.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

using kernels::Lines;

// The lines of x along `axis`. A result without that axis (keepdims 0) has one axis fewer.
Lines lines_along(const Lowering& lowering, int axis, ValueId x, ValueId y, ValueId z = {}) {
  const Shape& shape = lowering.shape(x);
  const auto stride = [&](ValueId result, int i) -> std::int64_t {
    if (!result.valid()) return 0;
    const Strides& strides = lowering.view(result).strides;
    const bool fewer = static_cast<int>(strides.size()) < shape.rank();
    if (fewer && i == axis) return 0;
    return strides[static_cast<std::size_t>(fewer && i > axis ? i - 1 : i)];
  };
  Lines lines{.axes = {},
              .length = shape[axis],
              .x_step = stride(x, axis),
              .y_step = stride(y, axis),
              .z_step = stride(z, axis),
              .type = lowering.element_in_memory(x)};
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis) lines.axes.push_back({shape[i], stride(x, i), stride(y, i), stride(z, i)});
  return lines;
}

Lowered emit(Lowering& lowering, const Node& node, kernels::Prepared kernel,
             std::vector<DraftOperand> outputs) {
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(node.inputs[0])}, std::move(outputs));
  return {};
}

Lowered lower_cumsum(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const Tensor& axis = lowering.graph().value(node.inputs[1]).data;
  const int along = normalize_axis(static_cast<std::int64_t>(axis.at(0)), lowering.shape(x).rank());
  kernels::Prepared kernel =
      kernels::prepare(kernels::RunningSum{.lines = lines_along(lowering, along, x, y),
                                           .exclusive = node.attributes.integer("exclusive", 0) != 0,
                                           .reverse = node.attributes.integer("reverse", 0) != 0});
  if (lowering.element_in_memory(x) != lowering.type(y).element)
    return refuse("running sum", "the sum is of another type");
  return emit(lowering, node, std::move(kernel), {lowering.write(y)});
}

Lowered lower_arg(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const int axis = normalize_axis(node.attributes.integer("axis", 0), lowering.shape(x).rank());
  return emit(
      lowering, node,
      kernels::prepare(kernels::ExtremePlace{.lines = lines_along(lowering, axis, x, y),
                                             .largest = node.op == "ArgMax",
                                             .last = node.attributes.integer("select_last_index", 0) != 0}),
      {lowering.write(y)});
}

// Values and places; memory for the one that nobody asks for, in the order of the other.
Lowered lower_top_k(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const ValueId z = node.outputs.size() > 1 ? node.outputs[1] : ValueId();
  const int axis = normalize_axis(node.attributes.integer("axis", -1), lowering.shape(x).rank());
  const ValueId any = y.valid() ? y : z;
  const Shape& result = lowering.shape(any);
  kernels::Prepared kernel = kernels::prepare(
      kernels::ExtremeElements{.lines = lines_along(lowering, axis, x, y.valid() ? y : z, z.valid() ? z : y),
                               .count = result[axis],
                               .largest = node.attributes.integer("largest", 1) != 0});
  if (!kernel) return std::unexpected(kernel.error());
  const auto place = [&](ValueId value, ElementType type) {
    return value.valid()
               ? lowering.write(value)
               : lowering.temporary(static_cast<std::size_t>(result.element_count()) * size_in_bytes(type));
  };
  return emit(lowering, node, std::move(kernel),
              {place(y, lowering.element_in_memory(x)), place(z, ElementType::i64)});
}

constexpr Lowerer lowerers[] = {{"CumSum", "running sum", lower_cumsum},
                                {"ArgMax", "place of an extreme", lower_arg},
                                {"ArgMin", "place of an extreme", lower_arg},
                                {"TopK", "extreme elements", lower_top_k}};

}  // namespace

extern constinit const LowererFamily line_lowerers{lowerers};

}  // namespace superstep::target::cpu
