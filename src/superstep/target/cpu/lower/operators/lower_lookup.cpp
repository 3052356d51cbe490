// Rows and elements by index, and sums of what goes back to them.
#include <algorithm>

#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/move/element_lookup.h"
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

// Lines along the last axis of data and indices that agree in all others.
std::expected<kernels::ElementLookup, Refusal> lines_of(const Lowering& lowering, const Node& node,
                                                        ValueId data, ValueId indices) {
  const Shape &shape = lowering.shape(data), &chosen = lowering.shape(indices);
  const int last = shape.rank() - 1;
  if (last < 0 || normalize_axis(node.attributes.integer("axis", 0), shape.rank()) != last)
    return refuse("elements by index", "the axis is not the last");
  for (int axis = 0; axis < last; ++axis)
    if (shape[axis] != chosen[axis])
      return refuse("elements by index", "only a part of the lines is looked at");
  if (!all_row_major(lowering, node)) return refuse("elements by index", "a tensor is not row-major");
  if (lowering.element_in_memory(data) != ElementType::f32)
    return refuse("elements by index", "the data are not f32");
  return kernels::ElementLookup{.lines = shape.element_count() / std::max<std::int64_t>(1, shape[last]),
                                .length = shape[last],
                                .chosen = chosen[last],
                                .index_type = lowering.element_in_memory(indices)};
}

Lowered lower_gather_elements(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto lines = lines_of(lowering, node, node.inputs[0], node.inputs[1]);
  if (!lines) return std::unexpected(lines.error());
  auto kernel = kernels::prepare_gather_elements(*lines);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel),
                {lowering.read(node.inputs[0]), lowering.read(node.inputs[1])},
                {lowering.write(node.outputs[0])});
  return {};
}

Lowered lower_scatter_elements(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  if (!adds_elements_to_zeros(lowering.graph(), node))
    return refuse("elements by index", "elements are not added to zeros");
  const auto lines = lines_of(lowering, node, node.outputs[0], node.inputs[1]);
  if (!lines) return std::unexpected(lines.error());
  auto kernel = kernels::prepare_scatter_elements(*lines);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel),
                {lowering.read(node.inputs[1]), lowering.read(node.inputs[2])},
                {lowering.write(node.outputs[0])});
  return {};
}

constexpr Lowerer lowerers[] = {
    {"Gather", "rows by index", lower_gather},
    {"ScatterND", "rows by index", lower_scatter_rows},
    {"GatherElements", "elements by index", lower_gather_elements},
    {"ScatterElements", "elements by index", lower_scatter_elements},
};

}  // namespace

extern constinit const LowererFamily lookup_lowerers{lowerers};

}  // namespace superstep::target::cpu
