// Layers with parameters, as the builders of models write them.
//
// A layer "conv1" has the states "conv1.weight" and "conv1.bias" and names its nodes "conv1". Weights are
// drawn uniformly, by default by Xavier's rule, within sqrt(6 / (fan in + fan out)) (Glorot and Bengio,
// AISTATS 2010); biases are zero. Parameter i of the model, in the order of building, draws
// RandomStream(seed, i).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "superstep/op/core/builder.h"
#include "superstep/op/product/convolution.h"

namespace superstep::workload {

using op::Builder;
using op::Var;

// How weights are drawn: by Xavier's rule, or by that of He et al. (ICCV 2015), within sqrt(6 / fan in). A
// ReLU halves the variance of what it is given: through many of them, with no normalisation between, only the
// second keeps a signal and its derivative from fading.
enum class FirstWeights : std::uint8_t { xavier, he };

class Layers {
 public:
  // Parameters are of `element`, with the values that they have in f32.
  Layers(Builder& builder, std::uint64_t seed, FirstWeights first = FirstWeights::xavier,
         ElementType element = ElementType::f32)
      : builder_(builder), seed_(seed), first_(first), element_(element) {}

  Builder& builder() { return builder_; }

  // x [N, C, spatial...] -> [N, channels, ...]; a kernel of equal sides.
  Var conv(Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
           const op::ConvAttributes& attributes = {});
  // The same without bias: what a normalisation follows.
  Var plain_conv(Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                 const op::ConvAttributes& attributes = {});
  // x [N, C, H, W] -> [N, channels, ...], each pixel spread over a square window; weight [C, channels, k, k].
  Var conv_transpose(Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                     const op::ConvTransposeAttributes& attributes = {});
  // x [N, C] -> [N, features]; weight [features, C].
  Var dense(Var x, const std::string& name, std::int64_t features);
  // x [..., C] -> [..., features]; weight [C, features].
  Var linear(Var x, const std::string& name, std::int64_t features);
  // Rows of a table [count, width] by number: ids [...] -> [..., width]. Rows are drawn uniformly with the
  // standard deviation 0.02 (Devlin et al., arXiv 1810.04805).
  Var embedding(Var ids, const std::string& name, std::int64_t count, std::int64_t width);
  // x [N, C, ...] with scale one (or `scale`), bias zero and running statistics of mean 0 and variance 1.
  Var batch_norm(Var x, const std::string& name, double epsilon = 1e-5, double momentum = 0.9,
                 double scale = 1);
  // x [N, C, ...], each sample by itself over groups of neighbouring channels.
  Var group_norm(Var x, const std::string& name, std::int64_t groups, double epsilon = 1e-5);
  // Over the last axis.
  Var layer_norm(Var x, const std::string& name, double epsilon = 1e-5);
  // x [steps, N, C] -> every step's hidden state [steps, N, units], and the last one [N, units]. Weights are
  // drawn within 1 / sqrt(units), the forget gate's bias is one (Jozefowicz et al., ICML 2015).
  struct Sequence {
    Var states, last;
  };
  Sequence lstm(Var x, const std::string& name, std::int64_t units);
  // Activations, named after the layer that they follow.
  Var relu(Var x);
  Var leaky_relu(Var x);  // slope 0.01 below zero
  Var silu(Var x);        // x sigmoid(x)
  Var hard_swish(Var x);
  Var gelu(Var x);
  // At inference x itself; training steps draw a mask (transform/training/training_form.h).
  Var dropout(Var x, const std::string& name, double ratio);

  // The same of whole samples: what a residual branch adds.
  Var stochastic_depth(Var x, const std::string& name, double ratio);

  Var weight(const std::string& name, const Shape& shape, std::int64_t fan_in, std::int64_t fan_out);
  Var uniform(const std::string& name, const Shape& shape, double limit);
  Var zeros(const std::string& name, const Shape& shape) { return filled(name, shape, 0); }
  Var filled(const std::string& name, const Shape& shape, double value);

 private:
  Var conv_weight(Var x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                  std::int64_t group);
  template <class Activation>
  Var following(Var x, Activation activation);

  Builder& builder_;
  std::uint64_t seed_;
  FirstWeights first_;
  ElementType element_;
  std::uint64_t next_parameter_ = 0;
};

}  // namespace superstep::workload
