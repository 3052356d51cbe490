// The loops of layer normalisation. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/rows/layer_normalization.h"

namespace superstep::kernels {

struct LayerNormalizationLoops {
  void (*forward)(const LayerNormalization& n, const float* x, const float* scale, const float* bias,
                  float* y);
  void (*gradient)(const LayerNormalization& n, const float* dy, const float* x, const float* scale,
                   float* dx, float* d_scale, float* d_bias);  // adds to d_scale and d_bias
};

}  // namespace superstep::kernels
