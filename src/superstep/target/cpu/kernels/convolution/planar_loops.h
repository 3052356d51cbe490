// The loops of planar convolutions. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// Channels that are summed side by side.
inline constexpr std::int64_t planar_channels_together = 4;

// One row of some channels of y: the sum over lines of x, with their padding, and over the taps of a row.
struct PlanarRow {
  const float* const* lines;
  std::int64_t line_count;
  const float* weights;  // [line][tap][channel]
  std::int64_t taps, dilation;
  float* const* y;  // by channel
  std::int64_t columns;
};

// Reads of every line what the last whole vector of columns reaches, (taps - 1) * dilation elements behind
// it.
using PlanarLoop = void(const PlanarRow& row);

// One row of some channels of dy, times a line of x from where the first of some neighbouring taps begins.
struct PlanarGradientRow {
  const float* x;
  std::int64_t dilation;
  const float* const* dy;  // by channel
  std::int64_t columns;
  float* sums;  // [tap][channel] vectors, added to
};
// Reads of x what the last whole vector of columns reaches.
using PlanarGradientLoop = void(const PlanarGradientRow& row);
inline constexpr std::int64_t planar_taps_together = 4;

// `n` elements of f32 or bf16 as f32.
using PlanarLine = void(const void* from, std::int64_t n, float* to);

struct PlanarLoops {
  PlanarLoop* of[planar_channels_together];  // of one channel, of two, ...
  PlanarLine *line_of_f32, *line_of_bf16;
  PlanarGradientLoop* gradient_of[planar_channels_together][planar_taps_together];  // by channels and taps
  std::int64_t taps_together[planar_channels_together];  // of so many channels: those there are loops for
  std::int64_t lanes;
};

// For the instruction set in force.
const PlanarLoops& planar_loops();

}  // namespace superstep::kernels
