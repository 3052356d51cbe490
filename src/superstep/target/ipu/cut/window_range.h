// What a range of a sliding window's positions needs along one axis.
#pragma once

#include "superstep/bsp/graph/interval.h"
#include "superstep/op/window/window.h"

namespace superstep::target::ipu {

// The elements of the other side that are read, and the padding with which the same operator makes exactly
// the range of them.
struct WindowRange {
  bsp::Interval read;
  std::int64_t pad_begin = 0, pad_end = 0, output_padding = 0;
};

// Outputs [positions.begin, positions.end) of windows over an input.
WindowRange forward_range(const op::Window& window, bsp::Interval positions);

// The transpose: elements [positions.begin, positions.end) of what the windows of `window.output` positions
// write into.
WindowRange transposed_range(const op::Window& window, bsp::Interval positions);

// A range of positions by some of the kernel's: the elements that are read, one at least, and the window as
// it lies on them. Where it begins behind them its padding is negative; pad_end is not set.
struct PartWindow {
  bsp::Interval read;
  op::Window window;
};
PartWindow forward_window(const op::Window& window, bsp::Interval positions, bsp::Interval taps);
PartWindow transposed_window(const op::Window& window, bsp::Interval positions, bsp::Interval taps);

}  // namespace superstep::target::ipu
