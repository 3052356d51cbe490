#include "superstep/workload/layers.h"

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/group_normalization.h"
#include "superstep/op/rows/normalization.h"
#include "superstep/op/sequence/recurrent.h"

namespace superstep::workload {
namespace {

// Drawn where and when the values are wanted: models are built at several batches, to be compiled at one.
Tensor uniform_tensor(const Shape& shape, double limit, const RandomStream& random) {
  const auto draw = [=, count = static_cast<std::size_t>(shape.element_count())](std::byte* elements) {
    RandomStream(random).fill_uniform({reinterpret_cast<float*>(elements), count}, -limit, limit);
  };
  return Tensor::generated(ElementType::f32, shape, draw);
}

Tensor in_element(const Tensor& tensor, ElementType element) {
  return element == tensor.type() ? tensor : tensor.converted(element);
}

}  // namespace

Var Layers::weight(const std::string& name, const Shape& shape, std::int64_t fan_in, std::int64_t fan_out) {
  const std::int64_t fans = first_ == FirstWeights::he ? fan_in : fan_in + fan_out;
  return uniform(name, shape, std::sqrt(6.0 / static_cast<double>(fans)));
}

Var Layers::uniform(const std::string& name, const Shape& shape, double limit) {
  const Tensor drawn = uniform_tensor(shape, limit, RandomStream(seed_, next_parameter_++));
  return builder_.state(name, in_element(drawn, element_));
}

Var Layers::filled(const std::string& name, const Shape& shape, double value) {
  ++next_parameter_;
  return builder_.state(name, Tensor::full(element_, shape, value));
}

Var Layers::conv_weight(Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                        std::int64_t group) {
  const std::int64_t in = x.shape()[1] / group;
  std::vector<std::int64_t> extents{channels, in};
  std::int64_t window = 1;
  for (int axis = 2; axis < x.shape().rank(); ++axis) extents.push_back(kernel), window *= kernel;
  return weight(name + ".weight", Shape(extents), in * window, channels / group * window);
}

Var Layers::plain_conv(Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                       const op::ConvAttributes& attributes) {
  const op::NameScope scope(builder_, name);
  return op::conv(x, conv_weight(x, name, channels, kernel, attributes.group), {}, attributes);
}

Var Layers::conv(Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                 const op::ConvAttributes& attributes) {
  const op::NameScope scope(builder_, name);
  const Var w = conv_weight(x, name, channels, kernel, attributes.group);
  return op::conv(x, w, zeros(name + ".bias", {channels}), attributes);
}

Var Layers::conv_transpose(Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                           const op::ConvTransposeAttributes& attributes) {
  const op::NameScope scope(builder_, name);
  const std::int64_t in = x.shape()[1], window = kernel * kernel;
  const Var w = weight(name + ".weight", {in, channels, kernel, kernel}, in * window, channels * window);
  return op::conv_transpose(x, w, zeros(name + ".bias", {channels}), {attributes});
}

Var Layers::linear(Var x, const std::string& name, std::int64_t features) {
  const op::NameScope scope(builder_, name);
  const std::int64_t in = x.shape()[x.shape().rank() - 1];
  const Var w = weight(name + ".weight", {in, features}, in, features);
  return op::matmul(x, w) + zeros(name + ".bias", {features});
}

Var Layers::embedding(Var ids, const std::string& name, std::int64_t count, std::int64_t width) {
  const op::NameScope scope(builder_, name);
  return op::gather(uniform(name + ".weight", {count, width}, 0.02 * std::sqrt(3.0)), ids);
}

Var Layers::batch_norm(Var x, const std::string& name, double epsilon, double momentum, double scale) {
  const op::NameScope scope(builder_, name);
  const Shape channels{x.shape()[1]};
  const Var factor = filled(name + ".weight", channels, scale), bias = zeros(name + ".bias", channels);
  const Var mean = zeros(name + ".running_mean", channels);
  const Var variance = filled(name + ".running_var", channels, 1);
  return builder_.node1("BatchNormalization", {x, factor, bias, mean, variance},
                        {{"epsilon", epsilon}, {"momentum", momentum}});
}

Var Layers::group_norm(Var x, const std::string& name, std::int64_t groups, double epsilon) {
  const op::NameScope scope(builder_, name);
  const Shape channels{x.shape()[1]};
  const Var scale = filled(name + ".weight", channels, 1);
  return op::group_normalization(x, scale, zeros(name + ".bias", channels), groups, epsilon);
}

Var Layers::layer_norm(Var x, const std::string& name, double epsilon) {
  const op::NameScope scope(builder_, name);
  const Shape width{x.shape()[x.shape().rank() - 1]};
  const Var scale = filled(name + ".weight", width, 1);
  return op::layer_normalization(x, scale, zeros(name + ".bias", width), -1, epsilon);
}

Layers::Sequence Layers::lstm(Var x, const std::string& name, std::int64_t units) {
  const op::NameScope scope(builder_, name);
  const std::int64_t steps = x.shape()[0], batch = x.shape()[1], in = x.shape()[2];
  const double limit = 1 / std::sqrt(static_cast<double>(units));
  const Var w = uniform(name + ".weight", {1, 4 * units, in}, limit);
  const Var r = uniform(name + ".recurrent", {1, 4 * units, units}, limit);
  ++next_parameter_;
  Tensor bias(ElementType::f32, {1, 8 * units});
  for (std::int64_t i = 2 * units; i < 3 * units; ++i) bias.set(i, 1);  // gates: input, output, forget, cell
  const op::Recurrent cell = op::lstm(x, w, r, builder_.state(name + ".bias", bias));
  return {op::reshape(cell.y, {steps, batch, units}), op::reshape(cell.last, {batch, units})};
}

Var Layers::dense(Var x, const std::string& name, std::int64_t features) {
  const op::NameScope scope(builder_, name);
  const std::int64_t in = x.shape()[1];
  const Var w = weight(name + ".weight", {features, in}, in, features);
  return op::gemm(x, w, zeros(name + ".bias", {features}), {.transpose_b = true});
}

template <class Activation>
Var Layers::following(Var x, Activation activation) {
  const graph::Graph& graph = builder_.graph();
  const op::NameScope scope(builder_, graph.node(graph.value(x.id()).producer).name);
  return activation(x);
}

Var Layers::relu(Var x) {
  return following(x, [](Var y) { return op::relu(y); });
}
Var Layers::leaky_relu(Var x) {
  return following(x, [](Var y) { return op::leaky_relu(y); });
}

Var Layers::silu(Var x) {
  return following(x, [](Var y) { return y * op::sigmoid(y); });
}
Var Layers::hard_swish(Var x) {
  return following(x, [](Var y) { return op::hard_swish(y); });
}
Var Layers::gelu(Var x) {
  return following(x, [](Var y) { return op::gelu(y); });
}

Var Layers::stochastic_depth(Var x, const std::string& name, double ratio) {
  const op::NameScope scope(builder_, name);
  return op::stochastic_depth(x, ratio);
}

Var Layers::dropout(Var x, const std::string& name, double ratio) {
  const op::NameScope scope(builder_, name);
  return builder_.node1("Dropout", {x, builder_.scalar(x.element(), ratio)});
}

}  // namespace superstep::workload
