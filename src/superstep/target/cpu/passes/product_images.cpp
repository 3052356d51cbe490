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

}  // namespace

std::optional<Convolution> product_as_convolution(const Graph& graph, const Node& node) {
  const Shape &x = graph.type(node.inputs[0]).shape, &y = graph.type(node.outputs[0]).shape;
  const bool over_volumes = x.rank() > 4 && (node.op == "Conv" || node.op == "ConvTranspose");
  if (over_volumes) return std::nullopt;
  Convolution c;
  c.constant_weights = true;
  if (transform::is_pointwise_transposed(graph, node)) {  // to the channels of all positions of a block
    c.x = image_of(x, true);
    c.y = dense_image(x[2], x[3], x[0], y.element_count() / (x[0] * x[2] * x[3]), ElementType::f32);
    return c;
  }
  const bool convolution = node.op == "Conv";
  c.x = image_of(x, convolution);
  c.y = image_of(y, convolution);
  if (!convolution) return c;
  const Shape& weights = graph.type(node.inputs[1]).shape;
  const auto window = window_of(node, x, {weights.begin() + 2, weights.end()});
  if (!window) return std::nullopt;
  c.window = *window;
  c.groups = node.attributes.integer("group", 1);
  return c;
}

}  // namespace superstep::target::cpu
