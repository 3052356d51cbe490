// Reductions.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "superstep/op/core/definition.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/rows/reduce.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

// The axes a node reduces: the input (opset 13 and 18) or the attribute (before).
std::set<int> reduced_axes(const Lowering& lowering, const Node& node) {
  const int rank = lowering.shape(node.inputs[0]).rank();
  std::vector<std::int64_t> axes = node.attributes.integers("axes", {});
  if (node.inputs.size() > 1 && node.inputs[1].valid()) {
    const Tensor wide = lowering.graph().value(node.inputs[1]).data.converted(ElementType::i64);
    axes.assign(wide.as<std::int64_t>().begin(), wide.as<std::int64_t>().end());
  }
  std::set<int> result;
  for (std::int64_t axis : axes) result.insert(normalize_axis(axis, rank));
  if (axes.empty() && node.attributes.integer("noop_with_empty_axes", 0) == 0)
    for (int axis = 0; axis < rank; ++axis) result.insert(axis);
  return result;
}

struct Run {  // neighbouring dimensions of one class, walked with one stride
  std::int64_t extent, stride;
  bool reduced;
};

std::vector<Run> runs_of(const Shape& shape, const Strides& strides, const std::set<int>& reduced) {
  std::vector<Run> runs;
  for (int axis : physical_order(shape, strides)) {
    const Run next{shape[axis], strides[static_cast<std::size_t>(axis)], reduced.contains(axis)};
    if (!runs.empty() && runs.back().reduced == next.reduced &&
        runs.back().stride == next.extent * next.stride)
      runs.back() = {runs.back().extent * next.extent, next.stride, next.reduced};
    else
      runs.push_back(next);
  }
  return runs;
}

// [outer] [reduced] [inner], each of which may be missing.
std::expected<kernels::Reduce, Refusal> as_reduce(std::vector<Run> runs) {
  kernels::Reduce reduce;
  if (!runs.empty() && !runs.back().reduced) {
    if (runs.back().stride != 1) return refuse("reduction", "the kept dimension is not contiguous");
    reduce.inner = runs.back().extent;
    runs.pop_back();
  }
  if (!runs.empty() && runs.back().reduced) {
    reduce.reduced = runs.back().extent;
    reduce.reduced_stride = runs.back().stride;
    runs.pop_back();
  } else {
    reduce.reduced_stride = reduce.inner;
  }
  if (!runs.empty() && !runs.back().reduced) {
    reduce.outer = runs.back().extent;
    reduce.outer_stride = runs.back().stride;
    runs.pop_back();
  } else {
    reduce.outer_stride = reduce.reduced * reduce.reduced_stride;
  }
  if (!runs.empty()) return refuse("reduction", "the reduced dimensions do not lie together in memory");
  return reduce;
}

// Whether the output's kept dimensions lie in memory in the order in which the kernel writes them.
bool output_in_order(const Lowering& lowering, const Node& node, ValueId y, const std::set<int>& reduced) {
  const Shape& x = lowering.shape(node.inputs[0]);
  const bool keeps = lowering.shape(y).rank() == x.rank();
  std::vector<std::int64_t> axis_of_output(static_cast<std::size_t>(x.rank()), -1);
  std::int64_t next = 0;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (keeps || !reduced.contains(axis)) axis_of_output[static_cast<std::size_t>(axis)] = next++;
  std::int64_t step = 1;
  const std::vector<int> order = physical_order(x, lowering.view(node.inputs[0]).strides);
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    if (reduced.contains(*axis)) continue;
    const auto at = static_cast<std::size_t>(axis_of_output[static_cast<std::size_t>(*axis)]);
    if (lowering.view(y).strides[at] != step) return false;
    step *= x[*axis];
  }
  return true;
}

// Of the operators in the table below.
kernels::Reduction reduction_of(const Node& node) {
  using op::Folding;
  switch (op::traits_of(node.op).folding) {
    case Folding::sum: return kernels::Reduction::sum;
    case Folding::mean: return kernels::Reduction::mean;
    case Folding::largest: return kernels::Reduction::max;
    case Folding::smallest: return kernels::Reduction::min;
    case Folding::sum_of_squares: return kernels::Reduction::sum_of_squares;
    case Folding::product: return kernels::Reduction::product;
    default: throw Error(ErrorCode::internal, "a reduction without a kernel", node.name);
  }
}

// The kernel gives f32: where the result is to be bf16, a temporary takes that, which is then rounded.
bool is_rounded(const Lowering& lowering, ValueId y) { return lowering.type(y).element == ElementType::bf16; }

// Where the input lies in no order that the kernel takes: a copy of it with the reduced dimensions outermost.
Lowered reduce_a_copy(Lowering& lowering, const Node& node, ValueId y, const std::set<int>& reduced) {
  const ValueId x = node.inputs[0];
  const Shape& shape = lowering.shape(x);
  const Shape& result = lowering.shape(y);
  const bool rounded = is_rounded(lowering, y), in_order = lowering.is_row_major(y) && !rounded;
  const ElementType made = rounded ? ElementType::f32 : lowering.type(y).element;
  std::vector<int> order(reduced.begin(), reduced.end());
  kernels::Reduce reduce{.reduction = reduction_of(node), .type = lowering.element_in_memory(x)};
  reduce.outer = reduce.reduced = reduce.inner = 1;
  for (int axis : reduced) reduce.reduced *= shape[axis];
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!reduced.contains(axis)) {
      order.push_back(axis);
      reduce.inner *= shape[axis];
    }
  auto copy = kernels::prepare(kernels::StridedCopy{.extents = shape.extents(),
                                                    .x_strides = lowering.view(x).strides,
                                                    .y_strides = dense_strides(shape, order),
                                                    .x_type = reduce.type,
                                                    .y_type = reduce.type});
  if (!copy) return std::unexpected(copy.error());
  auto kernel = kernels::prepare(reduce);
  if (!kernel) return std::unexpected(kernel.error());
  auto back = kernels::prepare(kernels::StridedCopy{.extents = result.extents(),
                                                    .x_strides = result.row_major_strides(),
                                                    .y_strides = lowering.view(y).strides,
                                                    .x_type = made,
                                                    .y_type = lowering.type(y).element});
  if (!back) return std::unexpected(back.error());
  lowering.skip_widening(node.outputs[0]);
  const DraftOperand between =
      lowering.temporary(static_cast<std::size_t>(shape.element_count()) * size_in_bytes(reduce.type));
  lowering.emit("copy", node.name, std::move(*copy), {lowering.read(x)}, {between});
  const DraftOperand to =
      in_order ? lowering.write(y)
               : lowering.temporary(static_cast<std::size_t>(result.element_count()) * size_in_bytes(made));
  lowering.emit(node.op, node.name, std::move(*kernel), {between}, {to});
  if (in_order) return {};
  lowering.emit("copy", node.name, std::move(*back), {to}, {lowering.write(y)});
  return {};
}

// In the order in which y lies, which is the kernel's.
Lowered reduce_and_round(Lowering& lowering, const Node& node, ValueId y, kernels::KernelPointer kernel) {
  const std::int64_t count = lowering.shape(y).element_count();
  auto round = kernels::prepare(kernels::StridedCopy{
      .extents = {count}, .x_strides = {1}, .y_strides = {1}, .y_type = ElementType::bf16});
  if (!round) return std::unexpected(round.error());
  lowering.skip_widening(node.outputs[0]);
  const DraftOperand sums = lowering.temporary(static_cast<std::size_t>(count) * sizeof(float));
  lowering.emit(node.op, node.name, std::move(kernel), {lowering.read(node.inputs[0])}, {sums});
  lowering.emit("copy", node.name, std::move(*round), {sums}, {lowering.write(y)});
  return {};
}

Lowered lower_reduce(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = lowering.widened(node.outputs[0]);
  const ElementType element = lowering.element_in_memory(x);
  const bool wide = element != ElementType::f32 && element != ElementType::bf16;  // the kernel knows which
  if (lowering.type(y).element != (wide ? element : ElementType::f32) && (wide || !is_rounded(lowering, y)))
    return refuse("reduction", "the output is of another type");
  if (node.inputs.size() > 1 && node.inputs[1].valid() &&
      lowering.graph().value(node.inputs[1]).kind != graph::ValueKind::constant)
    return refuse("reduction", "the axes are not constant");
  const std::set<int> reduced = reduced_axes(lowering, node);
  auto reduce = as_reduce(runs_of(lowering.shape(x), lowering.view(x).strides, reduced));
  if (!reduce || !output_in_order(lowering, node, y, reduced))
    return reduce_a_copy(lowering, node, y, reduced);
  reduce->reduction = reduction_of(node);
  reduce->type = element;
  if (is_rounded(lowering, y)) {
    auto kernel = kernels::prepare(*reduce);
    if (!kernel) return std::unexpected(kernel.error());
    return reduce_and_round(lowering, node, y, std::move(*kernel));
  }
  const bool sums = reduce->reduction == kernels::Reduction::sum && !wide && lowering.can_accumulate(y) &&
                    lowering.is_row_major(y);
  reduce->accumulate = sums && !lowering.runs_once();
  auto kernel = kernels::prepare(*reduce);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.skip_widening(node.outputs[0]);
  const DraftOperand output = sums ? *lowering.accumulator(y, Lowering::Sum::written) : lowering.write(y);
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(x)}, {output});
  return {};
}

constexpr Lowerer lowerers[] = {
    {"ReduceSum", "reduction", lower_reduce},  {"ReduceMean", "reduction", lower_reduce},
    {"ReduceMax", "reduction", lower_reduce},  {"ReduceMin", "reduction", lower_reduce},
    {"ReduceProd", "reduction", lower_reduce}, {"ReduceSumSquare", "reduction", lower_reduce},
};

}  // namespace

extern constinit const LowererFamily reduction_lowerers{lowerers, Halves::in_f32};

}  // namespace superstep::target::cpu
