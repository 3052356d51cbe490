// The loops of depthwise convolutions: every channel is alone. Internal to the kernels.
#pragma once

#include <cstdint>
#include <optional>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/epilogue.h"

namespace superstep::kernels {

// The taps of a run: where each lies, in elements, from the source's and the weights' (or sums') first
// element.
struct DepthwiseTaps {
  std::int64_t count;
  const std::int64_t *source_offsets, *weight_offsets;
};

// What is done to a sum before it is stored.
enum class DepthwiseFinish : std::uint8_t { none, relu, clip, silu, hard_swish };

// An epilogue that the loop itself applies, while a sum is in a register: [bias] [activation].
struct DepthwiseEpilogue {
  DepthwiseFinish finish = DepthwiseFinish::none;
  bool bias = false;
  float low = 0, high = 0;  // of clip
};
std::optional<DepthwiseEpilogue> depthwise_epilogue(const Epilogue& epilogue);

// `columns` results that see the same taps: result(column)[c] = finish(first + sum over taps of
// weights(tap)[c] * source(tap, column)[c]), where `first` is what the result holds when it accumulates (f32
// alone), else the bias when there is one. Unless it accumulates, a result may be computed twice.
struct DepthwiseRun {
  std::int64_t columns, channels;
  DepthwiseTaps taps;
  const void *source, *weights;
  std::int64_t source_stride;  // elements, between columns
  void* result;
  std::int64_t result_stride;
  bool accumulate;
  const float* bias = nullptr;
  float low = 0, high = 0;  // of a clip
};

using DepthwiseLoop = void(const DepthwiseRun& run);

// sums(tap)[c] += sum over rows and columns of gradient(row, column)[c] * source(tap, row, column)[c].
struct DepthwiseGradientRun {
  std::int64_t columns, channels;
  DepthwiseTaps taps;
  const void* source;
  std::int64_t source_stride;
  const void* gradient;
  std::int64_t gradient_stride;
  float* sums;
  std::int64_t rows = 1, source_row_stride = 0, gradient_row_stride = 0;  // elements
};

using DepthwiseGradientLoop = void(const DepthwiseGradientRun& run);

// bf16 to f32: `columns` columns of `channels` neighbouring elements.
struct WidenRun {
  const bf16* source;
  std::int64_t source_stride;
  float* result;
  std::int64_t result_stride, columns, channels;
};

using WidenLoop = void(const WidenRun& run);

// For the instruction set in force; f32 or bf16 sources (and weights, of the same type), gradients and
// results.
DepthwiseLoop* depthwise_loop(ElementType source, ElementType result,
                              DepthwiseFinish finish = DepthwiseFinish::none);
WidenLoop* widen_loop();
DepthwiseGradientLoop* depthwise_gradient_loop(ElementType type);

}  // namespace superstep::kernels
