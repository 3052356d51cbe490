// Weights as bytes, and what their rounding adds to results in the mean.
#pragma once

#include <span>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/graph/graph.h"

namespace superstep::transform {

// How a product stores its weights: of a convolution [out][in of a group][taps], else [in][out] or, `out_in`,
// [out][in].
struct WeightAxes {
  bool convolution = false, out_in = false;
};

// Symmetric, with a scale an output channel. Of a convolution they lie as before, else [in][out], as
// MatMulInteger reads them. `excess`: what they are larger by than those that were rounded.
struct ByteWeights {
  Tensor bytes;
  std::vector<float> scales;
  std::vector<double> excess;
};
ByteWeights byte_weights(const Tensor& stored, const WeightAxes& axes);

// Of each tap of a convolution's window the share of positions at which it lies inside the image.
std::vector<double> shares_of_taps(const graph::Attributes& attributes, const Shape& x, const Shape& weights);

// Of each output channel, what the excess adds to the product where every channel of the input is its mean
// over samples and positions. `shares`: of the taps; empty where there are none.
std::vector<double> mean_excess(const ByteWeights& weights, std::span<const double> means,
                                std::span<const double> shares = {});

}  // namespace superstep::transform
