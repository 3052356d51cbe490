#include "superstep/target/cpu/passes/product_images.h"

#include <algorithm>

#include "superstep/target/cpu/lower/image_operands.h"
#include "superstep/transform/transposed_convolution.h"

namespace superstep::target::cpu {

namespace {

using graph::Graph;
using graph::Node;
using kernels::Convolution;
using kernels::dense_image;

// Of the sides of a product: [N, C, H, W] or [N, C, W] as an image, and rows of channels otherwise.
kernels::Image image_of(const Shape& shape, bool convolution) {
  if (!convolution) {
    const std::int64_t channels = shape[shape.rank() - 1];
    return dense_image(1, 1, shape.element_count() / std::max<std::int64_t>(1, channels), channels,
                       ElementType::f32);
  }
  const int rank = shape.rank();
  return dense_image(rank == 4 ? shape[2] : 1, shape[rank - 1], shape[0], shape[1], ElementType::f32);
}

// A ConvTranspose to the channels of all positions of a block.
Convolution over_blocks(const Graph& graph, const Node& node, const kernels::Window& window) {
  const Shape &x = graph.type(node.inputs[0]).shape, &y = graph.type(node.outputs[0]).shape;
  return {.x = image_of(x, true),
          .y = dense_image(x[2], x[3], x[0], y.element_count() / (x[0] * x[2] * x[3]), ElementType::f32),
          .window = window,
          .constant_weights = true};
}

}  // namespace

std::optional<Convolution> product_as_convolution(const Graph& graph, const Node& node) {
  const Shape &x = graph.type(node.inputs[0]).shape, &y = graph.type(node.outputs[0]).shape;
  const bool over_volumes = x.rank() > 4 && (node.op == "Conv" || node.op == "ConvTranspose");
  if (over_volumes) return std::nullopt;
  Convolution c;
  c.constant_weights = true;
  if (transform::is_pointwise_transposed(graph, node)) return over_blocks(graph, node, {});
  const bool transposed = node.op == "ConvTranspose", convolution = node.op == "Conv" || transposed;
  c.x = image_of(transposed ? y : x, convolution);
  c.y = image_of(transposed ? x : y, convolution);
  if (!convolution) return c;
  c.window = window_of(graph, node);
  c.groups = node.attributes.integer("group", 1);
  return c;
}

std::optional<Convolution> product_on_bytes_as_convolution(const Graph& graph, const Node& node) {
  const auto blocks = transform::as_block_convolution(graph, node);
  if (!blocks) return product_as_convolution(graph, node);
  return over_blocks(graph, node,
                     {.height = blocks->taps[0],
                      .width = blocks->taps[1],
                      .pad_top = blocks->before[0],
                      .pad_left = blocks->before[1]});
}

}  // namespace superstep::target::cpu
