// The Sobel filter in exact integers: both gradients and their magnitude, for windows of 3, 5, 7 and 9.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::baseline {

// Pixels of 16 bits, height x width, row-major, taken as 0 outside.
struct SobelFrame {
  int height = 0, width = 0;
  std::span<const std::uint16_t> pixels;
};

// gx grows along x (to the right), gy along y (downwards). With 3 x 3 taps, gx of the ramp a x + b y is 8 a.
struct Gradients {
  std::vector<std::int32_t> gx, gy;
};

// The window's two factors: binomial smoothing of `size` taps (1 2 1 for 3) and its derivative (-1 0 1), the
// binomial of size - 2 taps convolved with (-1 0 1). Throws Error (invalid_argument) unless `size` is 3, 5,
// 7 or 9: beyond, a gradient no longer fits into 32 bits.
std::vector<std::int32_t> smoothing_taps(int size);
std::vector<std::int32_t> derivative_taps(int size);

// Separable: one pass along rows, one along columns.
Gradients sobel(const SobelFrame& frame, int size);
// The same by the whole window at every pixel: slow, plain, for comparison.
Gradients sobel_by_window(const SobelFrame& frame, int size);

// sqrt(gx^2 + gy^2), in double precision before it is rounded to float.
std::vector<float> gradient_magnitude(const Gradients& gradients);

}  // namespace superstep::baseline
