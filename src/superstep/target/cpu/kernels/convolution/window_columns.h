// An image with the taps of each window's row side by side as channels: what a convolution of few channels
// reads as one long product instead of many short ones.
#pragma once

#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// x: element (n, c, h, w) at n * sample + c * channel + h * row + w * column; f32, at most 8 channels.
// height counts the rows of all planes of a volume.
// y: [height of x][outputs][batch][window.width * channels], dense; position o holds columns o * stride_w +
// k * dilation_w - pad_left of x for the taps k, zeros where they lie outside.
// Slots: inputs x; outputs y.
struct WindowColumns {
  std::int64_t height = 1, width = 1, batch = 1, channels = 1;
  std::int64_t row = 1, column = 1, sample = 1, channel = 1;  // strides of x
  Window window;
  std::int64_t outputs = 1;
  std::int64_t planes = 1;
};

Image columns_image(const WindowColumns& columns);
Prepared prepare(const WindowColumns& columns);

}  // namespace superstep::kernels
