// The loops of depthwise convolutions: every channel is alone. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

inline constexpr std::int64_t depthwise_tap_limit = 64;

// `columns` results that see the same taps: result(column)[c] = sum over taps of weights(tap)[c] *
// source(tap, column)[c].
struct DepthwiseRun {
  std::int64_t columns, channels, taps;
  const void* const* sources;  // of column 0, one a tap
  const void* const* weights;  // one a tap
  std::int64_t source_stride;  // elements, between columns
  float* result;
  std::int64_t result_stride;
  bool accumulate;
};

using DepthwiseLoop = void(const DepthwiseRun& run);

// sums(tap)[c] += sum over columns of gradient(column)[c] * source(tap, column)[c].
struct DepthwiseGradientRun {
  std::int64_t columns, channels, taps;
  const void* const* sources;
  std::int64_t source_stride;
  const void* gradient;
  std::int64_t gradient_stride;
  float* const* sums;
};

using DepthwiseGradientLoop = void(const DepthwiseGradientRun& run);

// For the instruction set in force; f32 or bf16 sources, weights and gradients.
DepthwiseLoop* depthwise_loop(ElementType type);
DepthwiseGradientLoop* depthwise_gradient_loop(ElementType type);

}  // namespace superstep::kernels
