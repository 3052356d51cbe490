// Layers with parameters, as the builders of models write them.
//
// A layer "conv1" has the states "conv1.weight" and "conv1.bias" and names its nodes "conv1". Weights are
// drawn uniformly by Xavier's rule, within sqrt(6 / (fan in + fan out)) (Glorot and Bengio, AISTATS 2010);
// biases are zero. Parameter i of the model, in the order of building, draws RandomStream(seed, i).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "superstep/op/builder.h"
#include "superstep/op/convolution.h"

namespace superstep::workload {

using op::Builder;
using op::Var;

class Layers {
 public:
  Layers(Builder& builder, std::uint64_t seed) : builder_(builder), seed_(seed) {}

  Builder& builder() { return builder_; }

  // x [N, C, H, W] -> [N, channels, ...]; a square kernel.
  Var conv(Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
           const op::ConvAttributes& attributes = {});
  // x [N, C] -> [N, features]; weight [features, C].
  Var dense(Var x, const std::string& name, std::int64_t features);
  // Activations, named after the layer that they follow.
  Var relu(Var x);
  Var leaky_relu(Var x);  // slope 0.01 below zero
  // At inference x itself; training steps draw a mask (transform/training_form.h).
  Var dropout(Var x, const std::string& name, double ratio);

  Var weight(const std::string& name, const Shape& shape, std::int64_t fan_in, std::int64_t fan_out);
  Var zeros(const std::string& name, const Shape& shape);

 private:
  template <class Activation>
  Var following(Var x, Activation activation);

  Builder& builder_;
  std::uint64_t seed_;
  std::uint64_t next_parameter_ = 0;
};

}  // namespace superstep::workload
