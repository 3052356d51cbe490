// Small models that exercise what the targets do with graphs, built by hand.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/softmax.h"
#include "superstep/op/window/pooling.h"

namespace superstep::test {

inline Tensor random_tensor(ElementType type, const Shape& shape, std::uint64_t seed, double scale = 1) {
  Tensor tensor(type, shape);
  RandomStream random(seed);
  for (std::int64_t i = 0; i < shape.element_count(); ++i) tensor.set(i, scale * random.uniform(-1, 1));
  return tensor;
}

// Layers whose parameters are states with random values.
class Layers {
 public:
  Layers(op::Builder& builder, std::uint64_t seed) : builder_(builder), seed_(seed) {}

  op::Var parameter(const std::string& name, const Shape& shape, double fan_in) {
    return builder_.state(name, random_tensor(ElementType::f32, shape, seed_++, 1.7 / std::sqrt(fan_in)));
  }
  op::Var conv(op::Var x, const std::string& name, std::int64_t out, std::int64_t kernel,
               const op::ConvAttributes& attributes = {}) {
    op::NameScope scope(builder_, name);
    const std::int64_t in = x.shape()[1] / attributes.group;
    const double fan_in = static_cast<double>(in * kernel * kernel);
    return op::conv(x, parameter(name + ".weight", {out, in, kernel, kernel}, fan_in),
                    parameter(name + ".bias", {out}, fan_in), attributes);
  }
  op::Var dense(op::Var x, const std::string& name, std::int64_t out) {
    op::NameScope scope(builder_, name);
    const std::int64_t in = x.shape()[1];
    return op::gemm(x, parameter(name + ".weight", {out, in}, static_cast<double>(in)),
                    parameter(name + ".bias", {out}, static_cast<double>(in)), {.transpose_b = true});
  }

 private:
  op::Builder& builder_;
  std::uint64_t seed_;
};

// A convolution, the non-local block of BraggNN, two convolutions, dense layers.
inline graph::Graph attention_network(std::int64_t batch, std::int64_t width = 16, std::int64_t size = 9) {
  graph::Graph graph("attention");
  op::Builder b(graph);
  Layers layers(b, 11);
  const op::Var x = b.input("x", ElementType::f32, {batch, 1, size, size});
  const op::Var first = layers.conv(x, "first", width, 3);
  const std::int64_t side = first.shape()[2], inner = width / 2;
  const auto flat = [&](const char* name) {
    return op::reshape(layers.conv(first, name, inner, 1), {batch, inner, side * side});
  };
  const op::Var theta = flat("theta"), phi = flat("phi"), g = flat("g");
  const op::Var scores = op::softmax(op::matmul(op::transpose(theta, {0, 2, 1}), phi), -1);
  const op::Var mixed = op::matmul(scores, op::transpose(g, {0, 2, 1}));
  const op::Var image = op::reshape(op::transpose(mixed, {0, 2, 1}), {batch, inner, side, side});
  op::Var y = op::leaky_relu(layers.conv(image, "out", width, 1) + first);
  y = op::leaky_relu(layers.conv(y, "second", inner, 3));
  y = op::relu(layers.conv(y, "third", 4, 3, {.pads = {1, 1, 1, 1}}));
  y = op::leaky_relu(layers.dense(op::flatten(y), "dense1", 8));
  y = op::leaky_relu(layers.dense(y, "dense2", 2));  // as wide as the layer that reads it
  b.output("y", layers.dense(y, "dense3", 2) + 0.5);
  return graph;
}

inline graph::Graph perceptron(std::int64_t batch) {
  graph::Graph graph("mlp");
  op::Builder b(graph);
  Layers layers(b, 5);
  op::Var y = b.input("x", ElementType::f32, {batch, 16});
  y = op::relu(layers.dense(y, "dense1", 24));
  y = op::tanh(layers.dense(y, "dense2", 20));
  b.output("y", op::sigmoid(layers.dense(y, "dense3", 3)));
  return graph;
}

// Padded and strided convolutions, pooling, a residual sum.
inline graph::Graph pooled_network(std::int64_t batch) {
  graph::Graph graph("pooled");
  op::Builder b(graph);
  Layers layers(b, 7);
  const op::Var x = b.input("x", ElementType::f32, {batch, 3, 12, 12});
  op::Var y = op::relu(layers.conv(x, "conv1", 8, 3, {.pads = {1, 1, 1, 1}}));
  y = op::max_pool(y, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  const op::Var skip = y;
  y = op::relu(layers.conv(y, "conv2", 8, 3, {.pads = {1, 1, 1, 1}}) + skip);
  y = op::relu(layers.conv(y, "conv3", 12, 3, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}));
  b.output("y", layers.dense(op::flatten(y), "dense", 5));
  return graph;
}

// Pointwise expansions, each read by a depthwise convolution alone.
inline graph::Graph bottleneck_network(std::int64_t batch) {
  graph::Graph graph("bottleneck");
  op::Builder b(graph);
  Layers layers(b, 13);
  const auto silu = [](op::Var v) { return v * op::sigmoid(v); };
  const op::Var x = b.input("x", ElementType::f32, {batch, 4, 10, 11});
  op::Var y = silu(layers.conv(x, "expand1", 70, 1));
  y = silu(layers.conv(y, "depthwise1", 70, 3, {.strides = {2, 2}, .pads = {1, 1, 1, 1}, .group = 70}));
  const op::Var skip = layers.conv(y, "project1", 6, 1);
  y = op::hard_swish(layers.conv(skip, "expand2", 18, 1));
  y = op::hard_swish(layers.conv(y, "depthwise2", 18, 5, {.pads = {2, 2, 2, 2}, .group = 18}));
  y = layers.conv(y, "project2", 6, 1) + skip;
  b.output("y", layers.dense(op::flatten(y), "dense", 3));
  return graph;
}

}  // namespace superstep::test
