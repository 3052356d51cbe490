// The implementations behind convolution.h. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"

namespace superstep::kernels {

// Sums over taps of matrix products (tap_convolution.cpp).
template <ProductMaker maker>
Prepared prepare_forward(const Convolution& convolution);
template <ProductMaker maker>
Prepared prepare_input_gradient(const Convolution& convolution);

// Products of dy and shifted x (weight_gradient.cpp).
template <ProductMaker maker>
Prepared prepare_weight_gradient(const Convolution& convolution);

// One channel a group (depthwise.cpp).
Prepared prepare_depthwise_forward(const Convolution& convolution);
Prepared prepare_depthwise_input_gradient(const Convolution& convolution);
Prepared prepare_depthwise_weight_gradient(const Convolution& convolution);

}  // namespace superstep::kernels
