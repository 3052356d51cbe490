// The transforms around the products of a Winograd convolution (winograd_matrices.h), element-wise over
// contiguous channels of neighbouring samples. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

// A square of positions (of an image, or of taps) on one side and the values at pairs of points ("planes") on
// the other, for `runs` stretches of `length` contiguous elements: the samples of a tile, or one stretch
// where they lie without gaps.
struct WinogradRun {
  struct Range {
    std::int64_t begin, end;
  };
  float* square;                           // position (0, 0), which may lie outside of the image
  std::int64_t row_stride, column_stride;  // elements between positions
  Range rows, columns;                     // positions that exist; the others are zero, or dropped
  std::int64_t run_stride;                 // between stretches, on the side of the square
  float* planes;                           // plane (0, 0)
  std::int64_t plane_stride, plane_run_stride;
  std::int64_t runs, length;
  bool accumulate = false;  // to positions: add
};

using WinogradLoop = void(const WinogradRun& run);

// For F(tile x tile, 3 x 3): t = tile + 2.
struct WinogradLoops {
  WinogradLoop* input;            // t x t positions of x -> t x t planes
  WinogradLoop* output_gradient;  // tile x tile positions of dy -> t x t planes
  WinogradLoop* filter;           // 3 x 3 taps -> t x t planes
  WinogradLoop* output;           // t x t planes -> tile x tile positions of y
  WinogradLoop* filter_gradient;  // t x t planes -> 3 x 3 taps
};

inline constexpr std::int64_t smallest_winograd_tile = 2, largest_winograd_tile = 4;

// For the instruction set in force.
WinogradLoops winograd_loops(std::int64_t tile);

}  // namespace superstep::kernels
