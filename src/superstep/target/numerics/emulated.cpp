// Which nodes are products of matrices, and which matrices.
#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/numerics/convolution_product.h"
#include "superstep/target/numerics/matrix_product.h"
#include "superstep/target/numerics/product.h"

namespace superstep::target::numerics {
namespace {

bool is_f32(const graph::Graph& graph, graph::ValueId id) {
  return !id.valid() || graph.type(id).element == ElementType::f32;
}

Emulated convolution_of(const graph::Graph& graph, const graph::Node& node, op::ProductKind kind) {
  const auto shape = [&](graph::ValueId id) -> const Shape& { return graph.type(id).shape; };
  const op::ConvGeometry geometry = op::geometry_of(kind, node.attributes, shape(node.inputs[0]),
                                                    shape(node.inputs[1]), shape(node.outputs[0]));
  const int bias = node.inputs.size() > 2 && node.inputs[2].valid() ? 2 : -1;
  if (kind == op::ProductKind::convolution) return {convolution_product(geometry), 1, 0, bias};
  if (kind == op::ProductKind::transposed_convolution) return {transposed_product(geometry), 1, 0, bias};
  return {weight_product(geometry), 1, 0, -1};
}

Emulated matrices_of(const graph::Graph& graph, const graph::Node& node) {
  const Shape &a = graph.type(node.inputs[0]).shape, &b = graph.type(node.inputs[1]).shape;
  return {stacked_product(a, b), 0, 1, -1};
}

Emulated scaled_matrices_of(const graph::Graph& graph, const graph::Node& node) {
  const Shape &a = graph.type(node.inputs[0]).shape, &y = graph.type(node.outputs[0]).shape;
  const bool transpose_a = node.attributes.integer("transA", 0) != 0;
  Emulated found{matrix_product({.m = y[0],
                                 .n = y[1],
                                 .k = a[transpose_a ? 0 : 1],
                                 .transpose_a = transpose_a,
                                 .transpose_b = node.attributes.integer("transB", 0) != 0}),
                 0, 1, -1};
  found.product->alpha = static_cast<float>(node.attributes.number("alpha", 1));
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2].valid();
  if (has_bias && node.attributes.number("beta", 1) != 0) found.bias = 2;
  return found;
}

Emulated sum_of(const graph::Graph& graph, const graph::Node& node, bool mean) {
  std::vector<std::int64_t> given;
  const bool has_axes = node.inputs.size() > 1 && node.inputs[1].valid();
  if (has_axes) {
    const graph::Value& axes = graph.value(node.inputs[1]);
    if (axes.kind != graph::ValueKind::constant) return {};
    const auto elements = axes.data.as<std::int64_t>();
    given.assign(elements.begin(), elements.end());
  }
  const Shape& shape = graph.type(node.inputs[0]).shape;
  const std::vector<int> axes = op::reduced_axes(node.attributes, shape.rank(), has_axes ? &given : nullptr);
  if (axes.empty() || shape.element_count() == 0) return {};
  Emulated found{sum_product(shape, axes), -1, 0, -1};
  if (mean) found.product->alpha = 1.0f / static_cast<float>(found.product->k);
  return found;
}

}  // namespace

Emulated emulated(const graph::Graph& graph, const graph::Node& node) {
  if (node.inputs.empty() || node.outputs.size() != 1) return {};
  if (!is_f32(graph, node.inputs[0]) || !is_f32(graph, node.outputs[0])) return {};
  const op::Traits& traits = op::traits_of(node.op);
  if (op::is_convolution(traits.product_kind)) return convolution_of(graph, node, traits.product_kind);
  if (traits.product_kind == op::ProductKind::matrices) return matrices_of(graph, node);
  if (traits.product_kind == op::ProductKind::scaled_matrices) return scaled_matrices_of(graph, node);
  if (traits.folding == op::Folding::sum || traits.folding == op::Folding::mean)
    return sum_of(graph, node, traits.folding == op::Folding::mean);
  return {};
}

}  // namespace superstep::target::numerics
