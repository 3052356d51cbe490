#include "superstep/workload/layers.h"

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/op/activation.h"
#include "superstep/op/matmul.h"

namespace superstep::workload {
namespace {

Tensor uniform(const Shape& shape, double limit, RandomStream random) {
  Tensor tensor(ElementType::f32, shape);
  for (float& value : tensor.as<float>()) value = static_cast<float>(random.uniform(-limit, limit));
  return tensor;
}

}  // namespace

Var Layers::weight(const std::string& name, const Shape& shape, std::int64_t fan_in, std::int64_t fan_out) {
  const double limit = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  return builder_.state(name, uniform(shape, limit, RandomStream(seed_, next_parameter_++)));
}

Var Layers::zeros(const std::string& name, const Shape& shape) {
  ++next_parameter_;
  return builder_.state(name, Tensor(ElementType::f32, shape));
}

Var Layers::conv(Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                 const op::ConvAttributes& attributes) {
  const op::NameScope scope(builder_, name);
  const std::int64_t in = x.shape()[1] / attributes.group, window = kernel * kernel;
  const Var w = weight(name + ".weight", {channels, in, kernel, kernel}, in * window,
                       channels / attributes.group * window);
  return op::conv(x, w, zeros(name + ".bias", {channels}), attributes);
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

Var Layers::dropout(Var x, const std::string& name, double ratio) {
  const op::NameScope scope(builder_, name);
  return builder_.node1("Dropout", {x, builder_.scalar(x.element(), ratio)});
}

}  // namespace superstep::workload
