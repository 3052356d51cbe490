#include "superstep/machine/ipu/kernel_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/machine/ipu/convolution.h"
#include "superstep/machine/ipu/operators.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/sequence/recurrent_gradient.h"

namespace superstep::machine::ipu {
namespace {

using graph::Node;
using graph::Phase;
using graph::ValueId;

std::string key_of(const Convolution& c, Pass pass, const Arrangement& arrangement) {
  std::string key =
      fmt::format("{} {} {} {} {} {} {}{}", static_cast<int>(pass), c.groups, c.batch, c.in_channels,
                  c.out_channels, static_cast<int>(c.partials), arrangement.input, arrangement.weights);
  for (const Axis& axis : c.axes)
    key +=
        fmt::format(" {},{},{},{},{}", axis.input, axis.output, axis.kernel, axis.stride, axis.kernel_step);
  return key;
}

// Sums of products, each row after those before it.
bool is_triangular(const std::string& op) {
  return op == "superstep.Cholesky" || op == "superstep.TriangularSolve" || op == "Det";
}

// Products of bytes have scale and zero point behind each operand.
ValueId weights_of(const Node& node) { return node.inputs[node.op.starts_with("QLinear") ? 3 : 1]; }

ElementType vector_element(const Precision& precision) {
  return precision.data == ElementType::f32 ? ElementType::f32 : ElementType::f16;
}

}  // namespace

Plan KernelPlanner::plan(const Work& work) {
  const Node& node = graph_.node(work.nodes[0]);
  switch (work.kind) {
    case WorkKind::product: return product(work, node);
    case WorkKind::recurrent: return recurrent(node);
    case WorkKind::attention: return attention(node);
    case WorkKind::normalization: return normalization(work);
    case WorkKind::reduction:
      if (node.op == "ArgMax" || node.op == "ArgMin") return arg(node);
      if (node.op == "TopK") return sorting(node);
      return is_triangular(node.op) ? triangular(node) : reduction(work, node);
    case WorkKind::pooling: return pooling(work, node);
    case WorkKind::gather: return gather(node);
    case WorkKind::scatter: return scatter(node);
    case WorkKind::movement: return movement(work, node);
    default: return elementwise(work);
  }
}

Plan KernelPlanner::product(const Work& work, const Node& node) {
  const op::ProductKind kind = op::traits_of(node.op).product_kind;
  if (op::is_matrix_product(kind) || node.op == "MatMulInteger" || node.op == "QLinearMatMul")
    return matrix(node, work.phase);
  if (node.op == "Einsum") return einsum(work);
  const Pass pass = pass_of(kind);
  const ValueId output = node.outputs[0];
  const auto geometry =
      op::geometry_of(kind, node.attributes, shape(node.inputs[0]), shape(weights_of(node)), shape(output));
  const Convolution convolution = convolution_of(geometry, precision_.data, precision_.partials);
  const Arrangement arrangement{.weights = pass == Pass::data_gradient && work.phase == Phase::backward};
  const std::string key = key_of(convolution, pass, arrangement);
  if (const auto found = products_.find(key); found != products_.end()) return found->second;
  Plan plan = plan_convolution(hardware_, convolution, pass, arrangement);
  if (pass == Pass::forward && node.inputs.size() > 2 && node.inputs[2].valid()) {
    const Plan bias = plan_elementwise(hardware_, {.elements = elements(output),
                                                   .inputs = 2,
                                                   .element = vector_element(precision_),
                                                   .cycles_per_vector = 1,
                                                   .loop = 1});
    plan.cycles += bias.cycles;
  }
  return products_[key] = plan;
}

// Leading axes of the left operand are rows where the right one has none, else groups. A transposed left
// operand sums over rows of a batch: both operands then lie across.
Plan KernelPlanner::matrix(const Node& node, Phase phase) {
  const Shape &a = shape(node.inputs[0]), &b = shape(weights_of(node)), &y = shape(node.outputs[0]);
  const op::ProductKind kind = op::traits_of(node.op).product_kind;
  const bool gemm = kind == op::ProductKind::scaled_matrices;
  const bool transposed = op::transposes_left(kind, node.attributes);
  const std::int64_t k = a.rank() == 0 ? 1 : gemm ? a[transposed ? 0 : 1] : a[a.rank() - 1];
  const std::int64_t n = y.rank() == 0 ? 1 : b.rank() < 2 ? 1 : y[y.rank() - 1];
  const std::int64_t rows = std::max<std::int64_t>(1, y.element_count() / std::max<std::int64_t>(1, n));
  std::int64_t groups = 1;
  for (int axis = 0; !gemm && axis + 2 < b.rank(); ++axis) groups *= b[axis];
  groups = std::clamp<std::int64_t>(groups, 1, rows);
  const Convolution problem =
      matrix_product(groups, std::max<std::int64_t>(1, rows / groups), std::max<std::int64_t>(1, k), n,
                     vector_element(precision_), precision_.partials);
  Arrangement arrangement;
  if (phase == Phase::backward) arrangement = {.input = transposed, .weights = true};
  const std::string key = "m" + key_of(problem, Pass::forward, arrangement);
  if (const auto found = products_.find(key); found != products_.end()) return found->second;
  return products_[key] = plan_convolution(hardware_, problem, Pass::forward, arrangement);
}

// As one product of its arithmetic: rows and outputs from the result, terms from the number of operations.
Plan KernelPlanner::einsum(const Work& work) {
  const Node& node = graph_.node(work.nodes[0]);
  const double outputs = std::max(1.0, elements(node.outputs[0]));
  const auto terms = std::max<std::int64_t>(1, std::llround(work.flops / 2 / outputs));
  const Shape& y = shape(node.outputs[0]);
  const std::int64_t n = y.rank() ? std::max<std::int64_t>(1, y[y.rank() - 1]) : 1;
  const Convolution problem = matrix_product(1, std::max<std::int64_t>(1, y.element_count() / n), terms, n,
                                             vector_element(precision_), precision_.partials);
  return plan_convolution(hardware_, problem, Pass::forward, {.input = true, .weights = true});
}

Plan KernelPlanner::recurrent(const Node& node) {
  const Shape &x = shape(node.inputs[0]), &r = shape(node.inputs[2]);
  const bool gradient = node.op == op::lstm_gradient_operator || node.op == op::recurrent_gradient_operator;
  const std::int64_t hidden = std::max<std::int64_t>(1, r[2]);
  Recurrent work{.steps = x[0],
                 .batch = x[1],
                 .inputs = x[2],
                 .hidden = hidden,
                 .gates = r[1] / hidden,
                 .element = vector_element(precision_)};
  if (node.attributes.integer("layout", 0) == 1) std::swap(work.steps, work.batch);
  const std::string key = fmt::format("r{} {} {} {} {} {}", work.steps, work.batch, work.inputs, work.hidden,
                                      work.gates, gradient);
  if (const auto found = products_.find(key); found != products_.end()) return found->second;
  Plan plan = plan_recurrent(hardware_, work);
  if (gradient) {
    work.training = true;
    Plan both = plan_recurrent(hardware_, work);
    both.cycles += -1.0 * plan.cycles;
    plan = both;
  }
  plan.cycles = static_cast<double>(std::max<std::int64_t>(1, r[0])) * plan.cycles;
  return products_[key] = plan;
}

Plan KernelPlanner::attention(const Node& node) {
  const Shape &q = shape(node.inputs[0]), &k = shape(node.inputs[1]);
  const std::int64_t heads =
      q.rank() == 4 ? q[1] : std::max<std::int64_t>(1, node.attributes.integer("q_num_heads", 1));
  const std::int64_t length = q.rank() == 4 ? q[2] : q[1], keys = k.rank() == 4 ? k[2] : k[1];
  const std::int64_t size = q.rank() == 4 ? q[3] : q[2] / heads;
  const ElementType element = vector_element(precision_);
  const auto product = [&](std::int64_t inner, std::int64_t outputs) {
    return plan_convolution(
        hardware_, matrix_product(q[0] * heads, length, inner, outputs, element, precision_.partials),
        Pass::forward);
  };
  Plan plan = in_sequence(product(size, keys), product(keys, size));
  const double scores = static_cast<double>(q[0] * heads) * static_cast<double>(length * keys);
  plan = in_sequence(plan, plan_reduction(hardware_, {scores / static_cast<double>(keys),
                                                      static_cast<double>(keys), element}));
  return in_sequence(plan, plan_elementwise(hardware_, {scores, 2, element, 6}));
}

// One map of the whole expression: a vector costs its loads, its arithmetic and one store.
Plan KernelPlanner::elementwise(const Work& work) {
  const ElementType element = vector_element(precision_);
  const auto operators = static_cast<double>(work.nodes.size());
  // Operations of a vector instruction, of which an element has work.flops / elements.
  const double per_vector = std::max(operators, work.flops / std::max(1.0, work.elements));
  const int inputs = std::max(
      1, static_cast<int>(std::lround(
             work.read_bytes / std::max(1.0, work.elements * static_cast<double>(bytes_of(element))))));
  const std::int64_t slow = work.kind == WorkKind::optimizer ? 4 : 1;
  return plan_elementwise(hardware_,
                          {.elements = work.elements,
                           .inputs = std::min(inputs, 6),
                           .element = work.kind == WorkKind::optimizer ? precision_.optimizer : element,
                           .cycles_per_vector = std::llround(per_vector) + slow});
}

namespace {

// Two reductions in the same supersteps.
Plan together(Plan reduction) {
  reduction.cycles.compute *= 2;
  reduction.cycles.exchange *= 2;
  return reduction;
}

// Operators that take a mean away and divide by a deviation.
bool whitens(const std::string& op) {
  return op == "BatchNormalization" || op == "GroupNormalization" || op == "InstanceNormalization" ||
         op == "LayerNormalization";
}

}  // namespace

// Two passes over the data: less the mean, by the deviation. The second is in place (PopLibs, normWhiten).
Plan KernelPlanner::whitening(double total) const {
  const ElementType element = vector_element(precision_);
  const Plan less = plan_elementwise(hardware_, {total, 2, element, 2});
  return in_sequence(less, plan_elementwise(hardware_, {total, 2, element, 2, 0, 1}));
}

// Statistics in the same supersteps; the data whitened; by the scale, and the offset added (PopLibs,
// normalise). What is served has scale and statistics folded into one factor and one offset, which one
// pass applies, as our programs do (PopLibs makes two of it).
Plan KernelPlanner::whitened_and_scaled(const Work& work, const Node& node) const {
  const double total = elements(node.inputs[0]);
  const bool by_channel = work.op == "BatchNormalization";
  if (by_channel && node.attributes.integer("training_mode", 0) == 0)
    return plan_elementwise(hardware_, {total, 2, vector_element(precision_), 2});
  const Plan scale = whitening(total);  // two passes of the same kinds
  const Shape& x = shape(node.inputs[0]);
  const double samples = x.rank() > 0 ? static_cast<double>(x[0]) : 1;
  double outputs = total / std::max(1.0, x.rank() > 0 ? static_cast<double>(x[x.rank() - 1]) : 1.0);
  if (by_channel) outputs = x.rank() > 1 ? static_cast<double>(x[1]) : 1;
  if (work.op == "InstanceNormalization") outputs = samples * static_cast<double>(x[1]);
  if (work.op == "GroupNormalization")
    outputs = samples * static_cast<double>(node.attributes.integer("num_groups", 1));
  const Plan statistics =
      plan_reduction(hardware_, {outputs, std::max(1.0, total / outputs), vector_element(precision_)});
  return in_sequence(in_sequence(together(statistics), whitening(total)), scale);
}

// Statistics are kept: the data whitened again, sums of the gradient and of its product with it for scale and
// offset, by the scale, the same sums for the statistics, and four passes that put it together (PopLibs,
// normParamGradients and normStatisticsGradients).
Plan KernelPlanner::group_gradient(const Work& work) const {
  const ElementType element = vector_element(precision_);
  const double total = work.elements;
  const Plan pass = plan_elementwise(hardware_, {total, 2, element, 2});
  const double outputs = std::max(1.0, std::sqrt(total));  // channels of samples: few beside the data
  const Plan sums =
      in_sequence(pass, together(plan_reduction(hardware_, {outputs, total / outputs, element})));
  Plan plan = in_sequence(in_sequence(whitening(total), sums), in_sequence(pass, sums));
  for (int i = 0; i < 4; ++i) plan = in_sequence(plan, pass);
  return plan;
}

// Of softmax and its like, and of gradients: two reductions, three for a gradient, then two passes.
Plan KernelPlanner::normalization(const Work& work) {
  if (work.op == "GroupNormalizationGradient") return group_gradient(work);
  const Node& node = graph_.node(work.nodes[0]);
  if (whitens(work.op)) return whitened_and_scaled(work, node);
  const double total = elements(node.inputs[0]);
  const Shape& x = shape(node.inputs[0]);
  const double outputs = x.rank() > 0 ? total / std::max(1.0, static_cast<double>(x[x.rank() - 1])) : 1.0;
  const ElementType element = vector_element(precision_);
  const Plan scale = plan_elementwise(hardware_, {total, 2, element, 2});
  const Plan statistics = plan_reduction(hardware_, {outputs, total / outputs, element});
  Plan plan = in_sequence(scale, scale);
  const bool gradient = work.op.find("Gradient") != std::string::npos;
  for (int i = 0; i < (gradient ? 3 : 2); ++i) plan = in_sequence(plan, statistics);
  return plan;
}

Plan KernelPlanner::reduction(const Work& work, const Node& node) {
  const double total = elements(node.inputs[0]), outputs = std::max(1.0, work.elements);
  const Plan plan =
      plan_reduction(hardware_, {outputs, std::max(1.0, total / outputs), vector_element(precision_)});
  // Samples, crops, norms: the arithmetic of each result too.
  if (op::traits_of(node.op).work == WorkKind::elementwise) return in_sequence(plan, elementwise(work));
  if (work.op == "superstep.ChannelSums")  // of the gradient, and of its product with the whitened data
    return in_sequence(plan_elementwise(hardware_, {total, 2, vector_element(precision_), 2}),
                       together(plan));
  if (work.op != "superstep.ChannelMoments") return plan;
  // Statistics that the forward pass had: the vendor keeps them, and whitens the data again with them.
  return work.phase == Phase::backward ? whitening(total) : together(plan);
}

Plan KernelPlanner::pooling(const Work& work, const Node& node) {
  const bool backward = work.op.find("Gradient") != std::string::npos;
  const double small = elements(backward ? node.inputs[0] : node.outputs[0]);
  const double large = elements(backward ? node.outputs[0] : node.inputs[0]);
  double window = std::max(1.0, large / std::max(1.0, small));
  if (node.attributes.has("kernel_shape")) {
    window = 1;
    for (std::int64_t extent : node.attributes.integers("kernel_shape"))
      window *= static_cast<double>(extent);
  }
  const bool maximum = work.op.find("Max") != std::string::npos;
  return plan_pooling(hardware_, {small, large, window, vector_element(precision_), maximum}, backward);
}

Plan KernelPlanner::gather(const Node& node) {
  if (node.op == "OneHot") return plan_fill(hardware_, elements(node.outputs[0]), vector_element(precision_));
  if (node.op == "GatherElements") return pick(node, false);
  const Shape& table = shape(node.inputs[0]);
  const double results = elements(node.outputs[0]);
  const auto indices = std::max<std::int64_t>(1, shape(node.inputs[1]).element_count());
  const auto row = std::max<std::int64_t>(1, std::llround(results / static_cast<double>(indices)));
  const auto rows = std::max<std::int64_t>(1, table.element_count() / row);
  // Rows that all lie apart, one an element: each tile picks among its own.
  if (row == 1 && indices > hardware_.tiles)
    return plan_elementwise(
        hardware_, {results, 2, ElementType::f32, 8, 4.0 * results / static_cast<double>(hardware_.tiles)});
  return plan_gather(hardware_, {rows, row, indices, vector_element(precision_)});
}

Plan KernelPlanner::pick(const Node& node, bool scatters) {
  const Shape &data = shape(node.inputs[0]), &indices = shape(node.inputs[1]);
  const int axis = normalize_axis(node.attributes.integer("axis", 0), data.rank());
  const double picks = static_cast<double>(std::max<std::int64_t>(1, indices[axis]));
  const double extent = static_cast<double>(std::max<std::int64_t>(1, data[axis]));
  const double lines = scatters ? elements(node.inputs[0]) / extent : elements(node.inputs[1]) / picks;
  return plan_pick(hardware_, {std::max(1.0, lines), picks, extent, vector_element(precision_), scatters});
}

// Sums of rows by number: the last indices say which row of the result each of `count` rows is added to.
Plan KernelPlanner::add_rows(const Node& node) {
  const Shape& data = shape(node.inputs[0]);
  const std::int64_t row = std::max<std::int64_t>(1, data[data.rank() - 1]);
  const std::int64_t count = shape(node.inputs[node.inputs.size() > 2 ? 2 : 1]).element_count();
  const auto rows =
      std::max<std::int64_t>(1, std::llround(elements(node.outputs[0]) / static_cast<double>(row)));
  return plan_scatter_add(hardware_,
                          {rows, row, std::max<std::int64_t>(1, count), vector_element(precision_)});
}

Plan KernelPlanner::scatter(const Node& node) {
  if (node.op == "ScatterElements") return pick(node, true);
  if (node.op == "superstep.SegmentSum" || node.op == "superstep.SparseProduct") return add_rows(node);
  const double updates = node.inputs.size() > 2 ? elements(node.inputs[2]) : elements(node.outputs[0]);
  const Shape& indices = shape(node.inputs[1]);
  const bool by_row = node.op == "ScatterND";
  const auto count = std::max<std::int64_t>(
      1, by_row && indices.rank()
             ? indices.element_count() / std::max<std::int64_t>(1, indices[indices.rank() - 1])
             : indices.element_count());
  const auto row = std::max<std::int64_t>(1, std::llround(updates / static_cast<double>(count)));
  const auto rows =
      std::max<std::int64_t>(1, std::llround(elements(node.outputs[0]) / static_cast<double>(row)));
  constexpr double update_bytes = 8;  // an index and an f32 value travel together
  if (row == 1)
    return plan_elementwise(hardware_, {elements(node.outputs[0]), 3, ElementType::f32, 8,
                                        update_bytes * updates / static_cast<double>(hardware_.tiles)});
  return plan_scatter_add(hardware_, {rows, row, count, vector_element(precision_)});
}

// A copy moves runs of elements that stay together; the shortest run decides.
Plan KernelPlanner::movement(const Work& work, const Node& node) {
  std::int64_t atom = 8;
  if (node.op == "Transpose") {
    const auto perm = node.attributes.integers("perm", {});
    const bool keeps_last = !perm.empty() && perm.back() == static_cast<std::int64_t>(perm.size()) - 1;
    if (!keeps_last) atom = bytes_of(vector_element(precision_));
  }
  return plan_rearrangement(hardware_, std::max(work.write_bytes, 1.0), atom);
}

Plan KernelPlanner::arg(const Node& node) {
  const double total = elements(node.inputs[0]);
  const double outputs = std::max(1.0, elements(node.outputs[node.outputs[0].valid() ? 0 : 1]));
  return plan_arg(hardware_, {outputs, std::max(1.0, total / outputs), vector_element(precision_)});
}

// The best of a line alone is found without an order.
Plan KernelPlanner::sorting(const Node& node) {
  const Shape& x = shape(node.inputs[0]);
  const ValueId result = node.outputs[node.outputs[0].valid() ? 0 : 1];
  const int axis = normalize_axis(node.attributes.integer("axis", -1), x.rank());
  const double length = std::max(1.0, static_cast<double>(x[axis]));
  if (shape(result)[axis] == 1) return arg(node);
  return plan_sorting(hardware_, {.lines = std::max(1.0, elements(node.inputs[0]) / length),
                                  .length = length,
                                  .kept = std::max(1.0, static_cast<double>(shape(result)[axis])),
                                  .element = vector_element(precision_)});
}

// Matrices of a stack at the same time. A determinant is the product of a factor's diagonal.
Plan KernelPlanner::triangular(const Node& node) {
  const Shape& a = shape(node.inputs[0]);
  Blocked work{.size = std::max<std::int64_t>(1, a[a.rank() - 1]), .element = vector_element(precision_)};
  work.batch = std::max<std::int64_t>(1, a.element_count() / (work.size * work.size));
  if (node.op != "superstep.TriangularSolve") return plan_cholesky(hardware_, work);
  const Shape& b = shape(node.inputs[1]);
  work.columns = std::max<std::int64_t>(1, b[b.rank() - 1]);
  return plan_triangular_solve(hardware_, work);
}

}  // namespace superstep::machine::ipu
