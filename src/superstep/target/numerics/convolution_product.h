// Convolutions and their two gradients as gathered products of matrices.
#pragma once

#include <memory>

#include "superstep/op/product/convolution.h"
#include "superstep/target/numerics/product.h"

namespace superstep::target::numerics {

// Products of a result in the order of taps, and of channels within a tap, as units take the channels of one
// tap together. Left is the weights, right the input (of a gradient: the gradient of the result).
std::unique_ptr<Product> convolution_product(const op::ConvGeometry& geometry);
std::unique_ptr<Product> transposed_product(const op::ConvGeometry& geometry);
// Products of a weight in the order of samples, and of positions within a sample. Left is the gradient of the
// result, right the input.
std::unique_ptr<Product> weight_product(const op::ConvGeometry& geometry);

}  // namespace superstep::target::numerics
