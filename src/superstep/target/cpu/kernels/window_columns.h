// An image with the taps of each window's row side by side as channels: what a convolution of few channels reads
// as one long product instead of many short ones.
#pragma once

#include "superstep/target/cpu/kernels/image.h"
#include "superstep/target/cpu/kernels/kernel.h"

namespace superstep::kernels {

// y: [height of x][outputs][batch][window.width * channels], dense; column o holds columns o * stride_w +
// k * dilation_w - pad_left of x for the taps k, zeros where they lie outside. f32, at most 8 channels.
// Slots: inputs x; outputs y.
struct WindowColumns {
  Image x;
  Window window;
  std::int64_t outputs = 1;
};

Image columns_image(const WindowColumns& columns);
Prepared prepare(const WindowColumns& columns);

}  // namespace superstep::kernels
