// The geometry of a convolution as sums over taps. Internal to the kernels.
//
// Seen from its result, a forward pass and an input gradient are the same thing: each position of the result
// is a sum over some taps, each tap reading one position of the source. Along one axis the positions fall
// into runs that have the same taps with sources that move along evenly; rows and columns are independent.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/target/cpu/kernels/convolution/convolution.h"

namespace superstep::kernels {

struct TapSource {
  std::int64_t tap, source;  // the position read by the run's first result
  friend bool operator==(const TapSource&, const TapSource&) = default;
};

// Result positions first, first + result_step, ... (count of them); each next one reads source_step further.
struct Run {
  std::int64_t first = 0, count = 1;
  std::int64_t result_step = 1, source_step = 1;
  std::vector<TapSource> taps;  // in ascending order of tap; may be empty
};

// The lowest source position of the run's first result; 0 without taps.
std::int64_t lowest_source(const Run& run);

struct AxisGeometry {
  std::int64_t taps, stride, dilation, pad, input, output;
};

AxisGeometry planes_of(const Convolution& convolution);
AxisGeometry rows_of(const Convolution& convolution);  // of a plane
AxisGeometry columns_of(const Convolution& convolution);

// Forward: result = output positions, source = input positions. Gradient: the other way round.
// `join` allows runs longer than one position that have steps other than 1.
std::vector<Run> forward_runs(const AxisGeometry& axis, bool join);
std::vector<Run> gradient_runs(const AxisGeometry& axis, bool join);

// A run of planes and a run of rows in each of them, as one of rows of the whole volume, seen from its first
// result: taps and sources are those of both together.
struct VolumeGeometry {
  std::int64_t row_taps;                  // of a plane of the window
  std::int64_t result_rows, source_rows;  // of a plane
};
Run joined_run(const Run& planes, const Run& rows, const VolumeGeometry& geometry);

}  // namespace superstep::kernels
