#include "superstep/target/ipu/place/layout.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace superstep::target::ipu {
namespace {

using Operand = std::function<bsp::Tensor(std::size_t)>;
using Views = std::optional<std::vector<bsp::Tensor>>;

// An integer input that is known; none otherwise.
std::optional<std::vector<std::int64_t>> known(const Operation& op, std::size_t i) {
  if (!op.has(i) || !op.constants[i]) return std::nullopt;
  std::vector<std::int64_t> values;
  for (std::int64_t k = 0; k < op.constants[i]->element_count(); ++k)
    values.push_back(static_cast<std::int64_t>(op.constants[i]->at(k)));
  return values;
}

Views reshape(const Operation& op, bsp::Graph&, const Operand& operand) {
  return std::vector{operand(0).reshape(op.output())};
}

Views transpose(const Operation& op, bsp::Graph&, const Operand& operand) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(op.input(0).rank()));
  std::iota(order.rbegin(), order.rend(), 0);
  order = op.node->attributes.integers("perm", order);
  return std::vector{operand(0).dim_shuffle(std::vector<int>(order.begin(), order.end()))};
}

Views concat(const Operation& op, bsp::Graph&, const Operand& operand) {
  std::vector<bsp::Tensor> parts;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) parts.push_back(operand(i));
  return std::vector{
      bsp::concat(parts, normalize_axis(op.node->attributes.integer("axis"), op.output().rank()))};
}

Views split(const Operation& op, bsp::Graph&, const Operand& operand) {
  const int axis = normalize_axis(op.node->attributes.integer("axis", 0), op.input(0).rank());
  std::vector<bsp::Tensor> parts;
  std::int64_t begin = 0;
  for (const graph::ValueType* type : op.outputs) {
    if (!type) return std::nullopt;
    parts.push_back(operand(0).slice(begin, begin + type->shape[axis], axis));
    begin += type->shape[axis];
  }
  return parts;
}

// Right-aligned, extents of one repeated.
bsp::Tensor broadcast_to(bsp::Tensor tensor, const Shape& shape) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(shape.rank() - tensor.rank()), 1);
  extents.insert(extents.end(), tensor.shape().begin(), tensor.shape().end());
  tensor = tensor.reshape(Shape(extents));
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (tensor.shape()[axis] != shape[axis]) tensor = tensor.broadcast(shape[axis], axis);
  return tensor;
}

Views expand(const Operation& op, bsp::Graph&, const Operand& operand) {
  return std::vector{broadcast_to(operand(0), op.output())};
}

Views tile(const Operation& op, bsp::Graph&, const Operand& operand) {
  bsp::Tensor tensor = operand(0);
  for (int axis = 0; axis < tensor.rank(); ++axis)
    if (op.output()[axis] == 0) tensor = tensor.slice(0, 0, axis);
  for (int axis = 0; axis < tensor.rank(); ++axis)
    if (const std::int64_t times = tensor.shape()[axis] ? op.output()[axis] / tensor.shape()[axis] : 1;
        times > 1)
      tensor = tensor.broadcast(times, axis);
  return std::vector{tensor};
}

bsp::Tensor slice_axis(const bsp::Tensor& tensor, int axis, std::int64_t start, std::int64_t count,
                       std::int64_t step) {
  if (count == 0) return tensor.slice(0, 0, axis);
  if (step > 0) return tensor.slice(start, start + (count - 1) * step + 1, axis).sub_sample(step, axis);
  const std::int64_t last = start + (count - 1) * step;
  return tensor.slice(last, start + 1, axis).reverse(axis).sub_sample(-step, axis);
}

Views slice(const Operation& op, bsp::Graph&, const Operand& operand) {
  const auto starts = known(op, 1), axes = op.has(3) ? known(op, 3) : std::nullopt;
  const auto steps = op.has(4) ? known(op, 4) : std::nullopt;
  if (!starts || (op.has(3) && !axes) || (op.has(4) && !steps)) return std::nullopt;
  bsp::Tensor tensor = operand(0);
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const int axis = normalize_axis(axes ? (*axes)[i] : static_cast<std::int64_t>(i), tensor.rank());
    const std::int64_t extent = op.input(0)[axis], step = steps ? (*steps)[i] : 1;
    std::int64_t start = (*starts)[i] < 0 ? (*starts)[i] + extent : (*starts)[i];
    start = std::clamp<std::int64_t>(start, 0, step < 0 ? std::max<std::int64_t>(0, extent - 1) : extent);
    tensor = slice_axis(tensor, axis, start, op.output()[axis], step);
  }
  return std::vector{tensor};
}

// `shape` elements of one value, which is on a tile once.
bsp::Tensor filled(bsp::Graph& graph, ElementType element, const Shape& shape, double value,
                   const std::string& name) {
  const bsp::Tensor one = graph.add_constant(element, Shape{1}, value, name);
  graph.set_tile_mapping(one, 0);
  return one.broadcast(shape.element_count(), 0).reshape(shape);
}

// The tensor with so many elements more (of `value`) or fewer (below 0) at one end of an axis.
bsp::Tensor padded(bsp::Graph& graph, const bsp::Tensor& tensor, int axis, bool front, std::int64_t width,
                   double value, const std::string& name) {
  const std::int64_t extent = tensor.shape()[axis];
  if (width == 0) return tensor;
  if (width < 0) return front ? tensor.slice(-width, extent, axis) : tensor.slice(0, extent + width, axis);
  std::vector<std::int64_t> extents = tensor.shape().extents();
  extents[static_cast<std::size_t>(axis)] = width;
  const bsp::Tensor filling = filled(graph, tensor.element_type(), Shape(extents), value, name);
  return front ? bsp::concat(filling, tensor, axis) : bsp::concat(tensor, filling, axis);
}

// Zeros (or another constant) around the tensor, which may also be cut.
Views pad(const Operation& op, bsp::Graph& graph, const Operand& operand) {
  const auto pads = known(op, 1), axes = op.has(3) ? known(op, 3) : std::nullopt;
  if (!pads || op.node->attributes.text("mode", "constant") != "constant" || (op.has(3) && !axes))
    return std::nullopt;
  if (op.has(2) && !op.constants[2]) return std::nullopt;
  const double value = op.has(2) ? op.constants[2]->at(0) : 0;
  bsp::Tensor tensor = operand(0);
  const std::size_t count = pads->size() / 2;
  for (std::size_t i = 0; i < count; ++i) {
    const int axis = normalize_axis(axes ? (*axes)[i] : static_cast<std::int64_t>(i), tensor.rank());
    for (const bool front : {true, false})
      tensor = padded(graph, tensor, axis, front, (*pads)[front ? i : i + count], value,
                      op.node->name + "/padding");
  }
  return std::vector{tensor};
}

// The middle of the tensor, or the tensor in the middle of zeros: an odd element goes to the end.
Views center(const Operation& op, bsp::Graph& graph, const Operand& operand) {
  bsp::Tensor tensor = operand(0);
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    const std::int64_t missing = op.output()[axis] - op.input(0)[axis], before = missing / 2;
    tensor = padded(graph, tensor, axis, true, before, 0, op.node->name + "/padding");
    tensor = padded(graph, tensor, axis, false, missing - before, 0, op.node->name + "/padding");
  }
  return std::vector{tensor};
}

// The value is an attribute, zero in f32 by default; the result's type is its.
Views constant_of_shape(const Operation& op, bsp::Graph& graph, const Operand&) {
  const graph::Attributes& a = *op.attributes;
  const double value = a.has("value") ? a.tensor("value").at(0) : 0;
  if (op.output().element_count() == 0) return std::nullopt;
  return std::vector{filled(graph, op.outputs[0]->element, op.output(), value, op.node->name + "/value")};
}

// [N, C, H, W] with blocks of b x b positions as channels: depth, row and column in this order or with the
// depth first.
Views depth_to_space(const Operation& op, bsp::Graph&, const Operand& operand) {
  const Shape &x = op.input(0), &y = op.output();
  const std::int64_t b = op.attributes->integer("blocksize");
  const bool depth_first = op.attributes->text("mode", "DCR") == "CRD";
  const bsp::Tensor apart = depth_first ? operand(0).reshape({x[0], y[1], b, b, x[2], x[3]})
                                        : operand(0).reshape({x[0], b, b, y[1], x[2], x[3]});
  const std::vector<int> order =
      depth_first ? std::vector<int>{0, 1, 4, 2, 5, 3} : std::vector<int>{0, 3, 4, 1, 5, 2};
  return std::vector{apart.dim_shuffle(order).reshape(y)};
}

Views space_to_depth(const Operation& op, bsp::Graph&, const Operand& operand) {
  const Shape &x = op.input(0), &y = op.output();
  const std::int64_t b = op.attributes->integer("blocksize");
  const bool depth_first = op.attributes->text("mode", "DCR") == "CRD";
  const std::vector<int> order =
      depth_first ? std::vector<int>{0, 1, 3, 5, 2, 4} : std::vector<int>{0, 3, 5, 1, 2, 4};
  return std::vector{operand(0).reshape({x[0], x[1], y[2], b, y[3], b}).dim_shuffle(order).reshape(y)};
}

struct Rule {
  std::string_view op;
  Views (*views)(const Operation&, bsp::Graph&, const Operand&);
};
constexpr Rule rules[] = {{"Identity", reshape},
                          {"Reshape", reshape},
                          {"Flatten", reshape},
                          {"Squeeze", reshape},
                          {"Unsqueeze", reshape},
                          {"Transpose", transpose},
                          {"Concat", concat},
                          {"Split", split},
                          {"Expand", expand},
                          {"Tile", tile},
                          {"Slice", slice},
                          {"Pad", pad},
                          {"CenterCropPad", center},
                          {"ConstantOfShape", constant_of_shape},
                          {"DepthToSpace", depth_to_space},
                          {"SpaceToDepth", space_to_depth}};

}  // namespace

Views layout_views(const Operation& operation, bsp::Graph& graph, const Operand& operand) {
  for (const Rule& rule : rules)
    if (rule.op == operation.node->op) return rule.views(operation, graph, operand);
  return std::nullopt;
}

}  // namespace superstep::target::ipu
