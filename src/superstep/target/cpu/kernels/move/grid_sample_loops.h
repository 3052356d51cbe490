// The loops of GridSample. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/move/grid_sample.h"

namespace superstep::kernels {

inline constexpr std::int64_t sampled_together = 64;  // points: a multiple of every vector's length

// What points read: elements of a picture, and what each weighs. Of linear interpolation four.
struct SampledPlaces {
  alignas(64) std::int32_t offset[4][sampled_together];
  alignas(64) float weight[4][sampled_together];
};

struct GridSampleLoops {
  // Of `count` points; coordinates behind them, as many as are sampled together, are numbers, too.
  void (*find)(const GridSample& sample, std::int64_t count, const float* along_width,
               const float* along_height, SampledPlaces& places);
  // All channels of `count` points; x and y stand at the picture and at the first point.
  void (*read)(const GridSample& sample, const SampledPlaces& places, std::int64_t count, const float* x,
               float* y);
};
GridSampleLoops grid_sample_loops();

}  // namespace superstep::kernels
