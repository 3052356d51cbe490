// Softmax and reductions.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "superstep/op/core/definition.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/rows/reduce.h"
#include "superstep/target/cpu/kernels/rows/softmax.h"
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/lower/operators/lower_softmax.h"

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
  if (!in_order && made != ElementType::f32 && made != ElementType::f64)
    return refuse("reduction", "the output lies in another order");
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
  const bool wide = element == ElementType::f64;
  if (element != ElementType::f32 && element != ElementType::bf16 && !wide)
    return refuse("reduction", "the input is neither f32 nor f64");
  if (lowering.type(y).element != (wide ? ElementType::f64 : ElementType::f32) &&
      (wide || !is_rounded(lowering, y)))
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

// ---- softmax -----------------------------------------------------------------------------------------

// How far apart the rows along `along` are, taken in the order of the other axes; nothing where they are not
// evenly apart.
std::optional<std::int64_t> row_stride(const Shape& shape, const Strides& strides, int along) {
  std::int64_t stride = 0, next = 0;  // next: what an axis further out must have
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (axis == along || shape[axis] == 1) continue;
    const std::int64_t own = strides[static_cast<std::size_t>(axis)];
    if (stride == 0) stride = next = own;
    if (own != next || own == 0) return std::nullopt;
    next = own * shape[axis];
  }
  return stride;
}

// The rows of x and y where these lie in memory in different ways, as when x is a part of a wider tensor.
std::expected<kernels::Softmax, Refusal> rows_apart(const Lowering& lowering, ValueId x, ValueId y,
                                                    std::int64_t axis) {
  const Shape& shape = lowering.shape(x);
  const int along = normalize_axis(axis, shape.rank());
  const Strides &from = lowering.view(x).strides, &to = lowering.view(y).strides;
  const auto contiguous = [&](const Strides& strides) {
    return shape[along] <= 1 || strides[static_cast<std::size_t>(along)] == 1;
  };
  if (!contiguous(from) || !contiguous(to)) return refuse("softmax", "the axis is not contiguous in memory");
  const auto x_stride = row_stride(shape, from, along), y_stride = row_stride(shape, to, along);
  if (!x_stride || !y_stride || *x_stride < 0 || *y_stride < 0)
    return refuse("softmax", "rows are not evenly apart in memory");
  return kernels::Softmax{.rows = shape.element_count() / std::max<std::int64_t>(1, shape[along]),
                          .length = shape[along],
                          .x_stride = *x_stride,
                          .y_stride = *y_stride,
                          .x_type = lowering.type(x).element,
                          .y_type = lowering.type(y).element};
}

// The rows of a tensor along `axis`: contiguous, the row number the same in every tensor of one layout.
std::expected<kernels::Softmax, Refusal> rows_of(const Lowering& lowering, ValueId id, std::int64_t axis) {
  const Shape& shape = lowering.shape(id);
  const Strides& strides = lowering.view(id).strides;
  const int along = normalize_axis(axis, shape.rank());
  if (shape[along] > 1 && strides[static_cast<std::size_t>(along)] != 1)
    return refuse("softmax", "the axis is not contiguous in memory");
  if (!is_dense(shape, strides)) return refuse("softmax", "the tensor is not dense");
  return kernels::Softmax{.rows = shape.element_count() / std::max<std::int64_t>(1, shape[along]),
                          .length = shape[along],
                          .x_type = lowering.type(id).element,
                          .y_type = lowering.type(id).element,
                          .dy_type = lowering.type(id).element};
}

Lowered lower_softmax(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const std::int64_t axis = node.attributes.integer("axis", -1);
  const bool alike = lowering.view(x).strides == lowering.view(y).strides;
  auto rows = alike ? rows_of(lowering, x, axis) : rows_apart(lowering, x, y, axis);
  if (!rows) return std::unexpected(rows.error());
  rows->y_type = lowering.type(y).element;
  rows->logarithm = node.op == "LogSoftmax";
  auto kernel = kernels::prepare_softmax(*rows);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(x)}, {lowering.write(y)});
  return {};
}

constexpr Lowerer lowerers[] = {
    {"ReduceSum", "reduction", lower_reduce},   {"ReduceMean", "reduction", lower_reduce},
    {"ReduceMax", "reduction", lower_reduce},   {"ReduceMin", "reduction", lower_reduce},
    {"ReduceProd", "reduction", lower_reduce},  {"ReduceSumSquare", "reduction", lower_reduce},
    {"Softmax", "softmax rows", lower_softmax}, {"LogSoftmax", "softmax rows", lower_softmax},
};

}  // namespace

extern constinit const LowererFamily reduction_lowerers{lowerers, Halves::in_f32};

// ---- the gradient of softmax --------------------------------------------------------------------------

// dx = t - y * sum(t) with t = y * dy: how op/rows/softmax.cpp writes it.
std::optional<SoftmaxGradient> match_softmax_gradient(const Graph& graph, NodeId root,
                                                      const std::vector<std::vector<NodeId>>& consumers) {
  const auto producer = [&](ValueId id, std::string_view op) -> std::optional<NodeId> {
    const graph::Value& value = graph.value(id);
    if (value.kind != graph::ValueKind::computed || graph.node(value.producer).op != op) return std::nullopt;
    return value.producer;
  };
  const auto readers = [&](NodeId id) { return consumers[graph.node(id).outputs[0].index()].size(); };
  // The other factor of a product that has `factor` as one.
  const auto partner = [&](NodeId product, ValueId factor) -> std::optional<ValueId> {
    const auto& factors = graph.node(product).inputs;
    if (factors[0] == factor) return factors[1];
    if (factors[1] == factor) return factors[0];
    return std::nullopt;
  };
  if (graph.node(root).op != "Sub") return std::nullopt;
  const auto weighted = producer(graph.node(root).inputs[0], "Mul");
  const auto scaled = producer(graph.node(root).inputs[1], "Mul");
  if (!weighted || !scaled || readers(*weighted) != 2 || readers(*scaled) != 1) return std::nullopt;
  for (ValueId y : graph.node(*scaled).inputs) {
    const auto softmax = producer(y, "Softmax");
    const auto dy = partner(*weighted, y), total = partner(*scaled, y);
    if (!softmax || !dy || !total) continue;
    const auto sum = producer(*total, "ReduceSum");
    const auto axis = graph.node(*softmax).attributes.integer("axis", -1);
    const bool fits = sum && readers(*sum) == 1 &&
                      graph.node(*sum).inputs[0] == graph.node(*weighted).outputs[0] &&
                      graph.node(*sum).attributes.integer("keepdims", 1) == 1 &&
                      sums_along(graph, *sum, normalize_axis(axis, graph.type(y).shape.rank()));
    if (fits) return SoftmaxGradient{root, y, *dy, axis, {*weighted, *sum, *scaled}};
  }
  return std::nullopt;
}

bool sums_along(const Graph& graph, NodeId sum, int axis) {
  const Node& node = graph.node(sum);
  std::vector<std::int64_t> axes = node.attributes.integers("axes", {});
  if (node.inputs.size() > 1 && node.inputs[1].valid()) {
    const graph::Value& value = graph.value(node.inputs[1]);
    if (value.kind != graph::ValueKind::constant) return false;
    for (std::int64_t i = 0; i < value.data.element_count(); ++i)
      axes.push_back(static_cast<std::int64_t>(value.data.at(i)));
  }
  return axes.size() == 1 && normalize_axis(axes[0], graph.type(node.inputs[0]).shape.rank()) == axis;
}

bool softmax_gradient_fits(const Lowering& lowering, const SoftmaxGradient& gradient) {
  const ValueId dx = lowering.graph().node(gradient.root).outputs[0];
  const Strides& strides = lowering.view(gradient.y).strides;
  if (lowering.view(gradient.dy).strides != strides || lowering.view(dx).strides != strides) return false;
  for (NodeId inner : gradient.inner)
    if (lowering.leaves_section(lowering.graph().node(inner).outputs[0])) return false;
  const ElementType element = lowering.type(gradient.y).element;
  if (element != ElementType::f32 && element != ElementType::bf16) return false;
  return rows_of(lowering, gradient.y, gradient.axis).has_value();
}

Lowered lower_softmax_gradient(Lowering& lowering, const SoftmaxGradient& gradient) {
  const Node& root = lowering.graph().node(gradient.root);
  const ValueId dx = root.outputs[0];
  auto rows = rows_of(lowering, gradient.y, gradient.axis);
  if (!rows) return std::unexpected(rows.error());
  rows->x_type = lowering.type(dx).element;
  rows->dy_type = lowering.type(gradient.dy).element;
  auto kernel = kernels::prepare_softmax_gradient(*rows);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit("Mul+ReduceSum+Mul+Sub", root.name, std::move(*kernel),
                {lowering.read(gradient.y), lowering.read(gradient.dy)}, {lowering.write(dx)});
  return {};
}

}  // namespace superstep::target::cpu
