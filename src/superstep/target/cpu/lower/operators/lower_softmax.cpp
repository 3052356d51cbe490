// Softmax along contiguous rows or down columns, and its gradient.
#include "superstep/target/cpu/lower/operators/lower_softmax.h"

#include <algorithm>

#include "superstep/op/core/definition.h"
#include "superstep/target/cpu/kernels/core/repeated.h"
#include "superstep/target/cpu/kernels/rows/softmax.h"
#include "superstep/target/cpu/kernels/rows/softmax_columns.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

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

// Columns that lie side by side, and the axes beyond them: where the axis itself is not contiguous.
struct ColumnsApart {
  kernels::SoftmaxColumns columns;
  std::vector<kernels::RepeatedAxis> outer;
};

std::expected<ColumnsApart, Refusal> columns_of(const Lowering& lowering, ValueId x, ValueId y,
                                                std::int64_t axis) {
  const Shape& shape = lowering.shape(x);
  const auto along = static_cast<std::size_t>(normalize_axis(axis, shape.rank()));
  const Strides &from = lowering.view(x).strides, &to = lowering.view(y).strides;
  ColumnsApart apart{.columns = {.length = shape[static_cast<int>(along)],
                                 .x_step = from[along],
                                 .y_step = to[along],
                                 .x_type = lowering.type(x).element,
                                 .y_type = lowering.type(y).element},
                     .outer = {}};
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (i != along && shape[static_cast<int>(i)] > 1) others.push_back(i);
  std::ranges::stable_sort(others, {}, [&](std::size_t i) { return to[i]; });
  const auto bytes = [](std::int64_t step, ElementType type) {
    return step * static_cast<std::int64_t>(size_in_bytes(type));
  };
  for (const std::size_t i : others) {
    std::int64_t& columns = apart.columns.columns;
    const std::int64_t extent = shape[static_cast<int>(i)];
    if (apart.outer.empty() && from[i] == columns && to[i] == columns)
      columns *= extent;
    else
      apart.outer.push_back(
          {extent, {bytes(from[i], apart.columns.x_type)}, {bytes(to[i], apart.columns.y_type)}});
  }
  if (apart.columns.columns == 1) return refuse("softmax of columns", "no axis is contiguous in memory");
  std::ranges::reverse(apart.outer);
  return apart;
}

bool is_logarithm(const Node& node) { return node.op == "LogSoftmax"; }

Lowered lower_softmax_columns(Lowering& lowering, const Node& node) {
  auto apart = columns_of(lowering, node.inputs[0], node.outputs[0], node.attributes.integer("axis", -1));
  if (!apart) return std::unexpected(apart.error());
  apart->columns.logarithm = is_logarithm(node);
  auto kernel = kernels::prepare(apart->columns);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, kernels::repeated(std::move(*kernel), std::move(apart->outer)),
                {lowering.read(node.inputs[0])}, {lowering.write(node.outputs[0])});
  return {};
}

Lowered lower_softmax_rows(Lowering& lowering, const Node& node) {
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const std::int64_t axis = node.attributes.integer("axis", -1);
  const bool alike = lowering.view(x).strides == lowering.view(y).strides;
  auto rows = alike ? rows_of(lowering, x, axis) : rows_apart(lowering, x, y, axis);
  if (!rows) return std::unexpected(rows.error());
  rows->y_type = lowering.type(y).element;
  rows->logarithm = is_logarithm(node);
  auto kernel = kernels::prepare_softmax(*rows);
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(x)}, {lowering.write(y)});
  return {};
}

Lowered lower_softmax(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  Lowered rows = lower_softmax_rows(lowering, node);
  if (rows) return rows;
  lowering.note_refusal(rows.error());
  return lower_softmax_columns(lowering, node);
}

constexpr Lowerer lowerers[] = {
    {"Softmax", "softmax", lower_softmax},
    {"LogSoftmax", "softmax", lower_softmax},
};

}  // namespace

extern constinit const LowererFamily softmax_lowerers{lowerers, Halves::in_f32};

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
