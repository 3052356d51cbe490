// Rows and elements by index, and sums of what goes back to them.
#include <algorithm>

#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/move/indexed_move.h"
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/lower/operators/lower_elementwise.h"

namespace superstep::target::cpu {
namespace {

bool all_row_major(const Lowering& lowering, const Node& node) {
  const auto row_major = [&](ValueId id) { return !id.valid() || lowering.is_row_major(id); };
  return std::ranges::all_of(node.inputs, row_major) && std::ranges::all_of(node.outputs, row_major);
}

Lowered lower_gather(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const Shape &table = lowering.shape(node.inputs[0]), &indices = lowering.shape(node.inputs[1]);
  if (normalize_axis(node.attributes.integer("axis", 0), table.rank()) != 0)
    return refuse("rows by index", "the axis is not the first");
  if (!all_row_major(lowering, node)) return refuse("rows by index", "a tensor is not row-major");
  if (table[0] < 1) return refuse("rows by index", "the table is empty");
  auto kernel =
      kernels::prepare_gather(kernels::GatherRows{.table_rows = table[0],
                                                  .rows = indices.element_count(),
                                                  .length = table.element_count() / table[0],
                                                  .type = lowering.element_in_memory(node.inputs[0]),
                                                  .index_type = lowering.element_in_memory(node.inputs[1])});
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel),
                {lowering.read(node.inputs[0]), lowering.read(node.inputs[1])},
                {lowering.write(node.outputs[0])});
  return {};
}

kernels::KernelPointer clearing(std::int64_t elements) {
  kernels::VectorProgram program({elements});
  program.store(program.constant(0), ElementType::f32, {1});
  return std::move(*kernels::prepare(program));
}

// data + what `sum` holds, or a copy of the data where it holds nothing yet.
kernels::KernelPointer adding(const Shape& shape, bool to_sum) {
  kernels::VectorProgram program({shape.element_count()});
  std::optional<kernels::VectorProgram::Value> sum;
  if (to_sum) sum = program.input(ElementType::f32, {1});
  const auto data = program.input(ElementType::f32, {1});
  program.store(sum ? program.binary(kernels::VectorOp::add, *sum, data) : data, ElementType::f32, {1});
  return std::move(*kernels::prepare(program));
}

// Where rows are added: memory that holds what they are added to. Best is that of the data themselves.
DraftOperand sum_of_rows(Lowering& lowering, const Node& node, bool to_zeros) {
  const ValueId data = node.inputs[0], result = node.outputs[0];
  const Shape& table = lowering.shape(result);
  if (lowering.can_accumulate(result)) {
    const bool once = lowering.runs_once() && !to_zeros;
    const DraftOperand sum =
        *lowering.accumulator(result, once ? Lowering::Sum::written : Lowering::Sum::added_to);
    if (to_zeros) return sum;
    std::vector<DraftOperand> inputs{lowering.read(data)};
    if (!once) inputs.insert(inputs.begin(), sum);
    lowering.emit("accumulate", node.name, adding(table, !once), std::move(inputs), {sum});
    return sum;
  }
  if (!to_zeros && lowering.take_over(data, result)) return lowering.write(result);
  const DraftOperand sum = lowering.write(result);
  if (to_zeros)
    lowering.emit("clear", node.name, clearing(table.element_count()), {}, {sum});
  else
    lowering.emit("copy", node.name, adding(table, false), {lowering.read(data)}, {sum});
  return sum;
}

// The gradient of a table: rows added up in the accumulator itself where that can be.
Lowered lower_scatter_rows(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  if (!adds_rows(lowering.graph(), node)) return refuse("rows by index", "rows are not added");
  const bool to_zeros = is_zero(lowering.graph(), node.inputs[0]);
  const ValueId result = node.outputs[0];
  const Shape& table = lowering.shape(result);
  if ((!to_zeros && !lowering.is_row_major(node.inputs[0])) || !lowering.is_row_major(node.inputs[1]) ||
      !lowering.is_row_major(node.inputs[2]) || !lowering.is_row_major(result))
    return refuse("rows by index", "a tensor is not row-major");
  auto kernel = kernels::prepare_scatter_add(
      kernels::GatherRows{.table_rows = table[0],
                          .rows = lowering.shape(node.inputs[1]).element_count(),
                          .length = table.element_count() / table[0],
                          .index_type = lowering.element_in_memory(node.inputs[1])});
  if (!kernel) return std::unexpected(kernel.error());
  const DraftOperand sum = sum_of_rows(lowering, node, to_zeros);
  lowering.emit(node.op, node.name, std::move(*kernel),
                {lowering.read(node.inputs[2]), lowering.read(node.inputs[1])}, {sum});
  return {};
}

// ---- any axis, any order ---------------------------------------------------------------------------------

using kernels::Combination;
using kernels::IndexedMove;
using Axis = kernels::IndexedMove::Axis;

// Strides of what is moved by index: the data, the other side, the indices.
struct Sides {
  ValueId data, other, indices;
  Strides data_strides, other_strides, index_strides;
};

Sides sides_of(const Lowering& lowering, ValueId data, ValueId other, ValueId indices) {
  return {data,
          other,
          indices,
          lowering.view(data).strides,
          lowering.view(other).strides,
          lowering.view(indices).strides};
}

IndexedMove move_between(const Lowering& lowering, const Sides& sides) {
  IndexedMove move;
  move.type = lowering.element_in_memory(sides.data);
  move.other_type = lowering.element_in_memory(sides.other);
  move.index_type = lowering.element_in_memory(sides.indices);
  return move;
}

// The slices of one axis: [outer axes] [axes of the indices] [inner axes].
IndexedMove slices_along(const Lowering& lowering, const Sides& sides, int axis) {
  IndexedMove move = move_between(lowering, sides);
  const Shape &data = lowering.shape(sides.data), &indices = lowering.shape(sides.indices);
  std::size_t other = 0;
  for (int i = 0; i < data.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i != axis) {
      move.axes.push_back({data[i], sides.data_strides[at], sides.other_strides[other++], 0, true});
      continue;
    }
    for (int k = 0; k < indices.rank(); ++k)
      move.axes.push_back(
          {indices[k], 0, sides.other_strides[other++], sides.index_strides[static_cast<std::size_t>(k)]});
  }
  move.components = {{0, data[axis], sides.data_strides[static_cast<std::size_t>(axis)]}};
  return move;
}

// An element for each index; where other axes are is said by the index's own place.
IndexedMove elements_along(const Lowering& lowering, const Sides& sides, int axis) {
  IndexedMove move = move_between(lowering, sides);
  const Shape& indices = lowering.shape(sides.indices);
  for (int i = 0; i < indices.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    move.axes.push_back({indices[i], i == axis ? 0 : sides.data_strides[at], sides.other_strides[at],
                         sides.index_strides[at], i != axis});
  }
  const auto at = static_cast<std::size_t>(axis);
  move.components = {{0, lowering.shape(sides.data)[axis], sides.data_strides[at]}};
  return move;
}

// A slice for each vector along the last axis of the indices, within `batch` axes in common.
IndexedMove slices_at_vectors(const Lowering& lowering, const Sides& sides, int batch) {
  IndexedMove move = move_between(lowering, sides);
  const Shape &data = lowering.shape(sides.data), &indices = lowering.shape(sides.indices);
  std::size_t other = 0;
  for (int i = 0; i + 1 < indices.rank(); ++i, ++other) {
    const bool common = i < batch;
    move.axes.push_back({indices[i], common ? sides.data_strides[other] : 0, sides.other_strides[other],
                         sides.index_strides[other], common});
  }
  const int depth = static_cast<int>(indices[indices.rank() - 1]);
  for (int i = batch + depth; i < data.rank(); ++i)
    move.axes.push_back(
        {data[i], sides.data_strides[static_cast<std::size_t>(i)], sides.other_strides[other++], 0, true});
  for (int i = 0; i < depth; ++i)
    move.components.push_back({i * sides.index_strides.back(), data[batch + i],
                               sides.data_strides[static_cast<std::size_t>(batch + i)]});
  return move;
}

std::expected<IndexedMove, Refusal> move_of(const Lowering& lowering, const Node& node, const Sides& sides) {
  const Shape& data = lowering.shape(sides.data);
  if (data.rank() < 1) return refuse("elements by index", "the data are one number");
  const auto axis = [&] { return normalize_axis(node.attributes.integer("axis", 0), data.rank()); };
  if (node.op == "Gather") return slices_along(lowering, sides, axis());
  if (node.op == "GatherElements" || node.op == "ScatterElements")
    return elements_along(lowering, sides, axis());
  return slices_at_vectors(lowering, sides, static_cast<int>(node.attributes.integer("batch_dims", 0)));
}

Lowered lower_indexed_gather(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const Sides sides = sides_of(lowering, node.inputs[0], node.outputs[0], node.inputs[1]);
  const auto move = move_of(lowering, node, sides);
  if (!move) return std::unexpected(move.error());
  auto kernel = kernels::prepare_indexed_gather(*move);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel),
                {lowering.read(sides.data), lowering.read(sides.indices)}, {lowering.write(sides.other)});
  return {};
}

std::optional<Combination> combination_of(const Node& node) {
  const std::string how = node.attributes.text("reduction", "none");
  if (how == "none") return Combination::replace;
  if (how == "add") return Combination::add;
  if (how == "mul") return Combination::multiply;
  if (how == "max") return Combination::largest;
  if (how == "min") return Combination::least;
  return std::nullopt;
}

// Memory that updates are combined in: the result's own, or of f32 beside a result of fewer bits.
struct Combined {
  DraftOperand memory;
  Strides strides;
  ElementType type;
};

Lowered emit_conversion(Lowering& lowering, const Node& node, const Shape& shape, const Strides& from,
                        ElementType from_type, DraftOperand x, const Strides& to, ElementType to_type,
                        DraftOperand y) {
  auto kernel = kernels::prepare(kernels::StridedCopy{.extents = shape.extents(),
                                                      .x_strides = from,
                                                      .y_strides = to,
                                                      .x_type = from_type,
                                                      .y_type = to_type});
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit("copy", node.name, std::move(*kernel), {std::move(x)}, {std::move(y)});
  return {};
}

Lowered emit_zeros(Lowering& lowering, const Node& node, const Shape& shape, const Combined& to) {
  kernels::VectorProgram program(shape.extents());
  program.store(program.constant(0), to.type, to.strides);
  auto kernel = kernels::prepare(program);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit("clear", node.name, std::move(*kernel), {}, {to.memory});
  return {};
}

// The data, there to be combined with.
Lowered emit_data(Lowering& lowering, const Node& node, const Combined& to) {
  const ValueId data = node.inputs[0];
  const Shape& shape = lowering.shape(data);
  if (is_zero(lowering.graph(), data)) return emit_zeros(lowering, node, shape, to);
  return emit_conversion(lowering, node, shape, lowering.view(data).strides, lowering.element_in_memory(data),
                         lowering.read(data), to.strides, to.type, to.memory);
}

Lowered lower_indexed_scatter(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId result = node.outputs[0], data = node.inputs[0];
  const auto combination = combination_of(node);
  if (!combination) return refuse("elements by index", "an unknown reduction");
  const ElementType type = lowering.type(result).element;
  const bool in_f32 =
      *combination != Combination::replace && (type == ElementType::bf16 || type == ElementType::f16);
  Sides sides = sides_of(lowering, result, node.inputs[2], node.inputs[1]);
  const Shape& shape = lowering.shape(result);
  if (in_f32) sides.data_strides = shape.row_major_strides();
  auto move = move_of(lowering, node, sides);
  if (!move) return std::unexpected(move.error());
  move->type = in_f32 ? ElementType::f32 : type;
  auto kernel = kernels::prepare_indexed_scatter(*move, *combination);
  if (!kernel) return std::unexpected(kernel.error());
  if (*combination == Combination::replace && lowering.element_in_memory(node.inputs[2]) != type)
    return refuse("elements by index", "updates are of another type");
  const bool taken = !in_f32 && !is_zero(lowering.graph(), data) &&
                     lowering.view(data).strides == sides.data_strides && lowering.take_over(data, result);
  const Combined to{in_f32
                        ? lowering.temporary(static_cast<std::size_t>(shape.element_count()) * sizeof(float))
                        : lowering.write(result),
                    sides.data_strides, move->type};
  if (!taken)
    if (Lowered done = emit_data(lowering, node, to); !done) return done;
  lowering.emit(node.op, node.name, std::move(*kernel),
                {lowering.read(sides.other), lowering.read(sides.indices)}, {to.memory});
  if (!in_f32) return {};
  return emit_conversion(lowering, node, shape, to.strides, to.type, to.memory, lowering.view(result).strides,
                         type, lowering.write(result));
}

constexpr Lowerer lowerers[] = {
    {"Gather", "rows by index", lower_gather},
    {"Gather", "elements by index", lower_indexed_gather},
    {"GatherElements", "elements by index", lower_indexed_gather},
    {"GatherND", "elements by index", lower_indexed_gather},
    {"ScatterND", "rows by index", lower_scatter_rows},
    {"ScatterND", "elements by index", lower_indexed_scatter},
    {"ScatterElements", "elements by index", lower_indexed_scatter},
};

}  // namespace

extern constinit const LowererFamily lookup_lowerers{lowerers};

}  // namespace superstep::target::cpu
