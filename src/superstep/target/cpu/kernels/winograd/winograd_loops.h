// The transforms around the products of a Winograd convolution (winograd_matrices.h), element-wise over
// contiguous channels of neighbouring samples. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// A square of positions (of an image, or of taps) on one side and the values at pairs of points ("planes") on
// the other, for `runs` stretches of `length` contiguous elements: the samples of a tile, or one stretch
// where they lie without gaps. Strides count elements.
struct WinogradRun {
  struct Range {
    std::int64_t begin, end;
  };
  void* square;                            // position (0, 0), which may lie outside of the image
  ElementType type = ElementType::f32;     // of what is read from it: f32 or bf16; f32 is written
  std::int64_t row_stride, column_stride;  // between positions
  Range rows, columns;                     // positions that exist; the others are zero, or dropped
  std::int64_t run_stride;                 // between stretches, on the side of the square
  // Plane (0, 0). Where planes are read, a vector behind each of them is readable too. Pairs: [pair of
  // columns][plane_run_stride][2], a stretch a column, from the first column of all on.
  void* planes;
  std::int64_t plane_stride, plane_run_stride;
  std::int64_t runs, length;
  std::int64_t first_column = 0;  // pairs: of the first stretch
  bool accumulate = false;        // to positions: add
};

using WinogradLoop = void(const WinogradRun& run);

// For F(tile x tile, 3 x 3), t = tile + 2; for the instruction set in force.
struct WinogradInputLoops {  // t x t positions of x -> t x t planes
  WinogradLoop *to_f32, *to_bf16, *to_pairs;
};
struct WinogradOtherLoops {
  WinogradLoop *output_gradient, *output_gradient_to_pairs;  // tile x tile positions of dy -> t x t planes
  WinogradLoop* filter;                                      // 3 x 3 taps -> t x t planes
};
struct WinogradSquareLoops {
  WinogradLoop* output;           // t x t planes -> tile x tile positions of y
  WinogradLoop* filter_gradient;  // t x t planes -> 3 x 3 taps
};

inline constexpr std::int64_t smallest_winograd_tile = 2, largest_winograd_tile = 4;

WinogradInputLoops winograd_input_loops(std::int64_t tile);
WinogradOtherLoops winograd_other_loops(std::int64_t tile);
WinogradSquareLoops winograd_square_loops(std::int64_t tile);

}  // namespace superstep::kernels
