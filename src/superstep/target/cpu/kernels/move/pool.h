// Pooling over windows of HWNC images, forward and backward. Global pooling is a window as large as the
// image.
#pragma once

#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

enum class Pooling : std::uint8_t {
  max,
  average,               // divided by the taps inside the image
  average_with_padding,  // divided by the taps of the window (count_include_pad)
};

// x and y share micro-batch and channels; f32 or bf16, or both u8 for a maximum without argmax. Padding never
// wins a maximum; of equal values the first tap in row-major order does. A NaN in a window gives NaN.
//
// forward:  inputs x; outputs y, and with save_argmax a u8 tensor with y's positions and channels, dense:
//           the winning tap's number kh * window.width + kw.
// gradient: inputs dy, and for max the u8 tensor; outputs dx, overwritten, or added to with `accumulate`.
struct Pool {
  Image x, y;
  Window window;  // at most 256 taps for max with save_argmax
  Pooling pooling = Pooling::max;
  bool save_argmax = false;
  bool accumulate = false;
};

const ImplementationList<Pool>& pooling_forward();

// The fault of a specification before any implementation is asked; else pooling_forward().
Prepared prepare_pool(const Pool& pool);
Prepared prepare_pool_gradient(const Pool& pool);

}  // namespace superstep::kernels
