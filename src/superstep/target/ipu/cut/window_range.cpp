#include "superstep/target/ipu/cut/window_range.h"

#include <algorithm>

#include "superstep/base/integers.h"

namespace superstep::target::ipu {
WindowRange forward_range(const op::Window& window, bsp::Interval positions) {
  const std::int64_t low = positions.begin * window.stride - window.pad_begin,
                     high = (positions.end - 1) * window.stride - window.pad_begin + window.reach();
  WindowRange range;
  range.read = {std::clamp<std::int64_t>(low, 0, window.input),
                std::clamp<std::int64_t>(high, 0, window.input)};
  range.pad_begin = range.read.begin - low;
  range.pad_end = high - range.read.end;
  if (range.read.size() > 0) return range;
  range.pad_begin = high - low;  // all of it is padding, before the input or behind it
  range.pad_end = 0;
  return range;
}

// Position i writes elements i * stride - pad + k * dilation. The first that reaches the range is
// ceil((begin + pad - reach + 1) / stride); an earlier one is taken where the padding would be negative.
WindowRange transposed_range(const op::Window& window, bsp::Interval positions) {
  const std::int64_t begin = positions.begin + window.pad_begin, last = positions.end - 1 + window.pad_begin;
  WindowRange range;
  range.read.begin = std::clamp<std::int64_t>(
      std::min(ceil_div(begin - window.reach() + 1, window.stride), begin / window.stride), 0,
      window.output - 1);
  range.read.end = std::clamp<std::int64_t>(last / window.stride + 1, range.read.begin + 1, window.output);
  range.pad_begin = begin - range.read.begin * window.stride;
  const std::int64_t written =
      (range.read.size() - 1) * window.stride + window.reach() - range.pad_begin - positions.size();
  range.pad_end = std::max<std::int64_t>(0, written);
  range.output_padding = std::max<std::int64_t>(0, -written);
  return range;
}

namespace {

// What lies in [low, high) of `extent` elements; where that is nothing, the element nearest to it.
bsp::Interval within(std::int64_t low, std::int64_t high, std::int64_t extent) {
  const std::int64_t begin = std::clamp<std::int64_t>(low, 0, extent - 1);
  return {begin, std::clamp<std::int64_t>(high, begin + 1, extent)};
}

}  // namespace

PartWindow forward_window(const op::Window& window, bsp::Interval positions, bsp::Interval taps) {
  const std::int64_t low = positions.begin * window.stride - window.pad_begin + taps.begin * window.dilation;
  PartWindow part;
  part.window = {.output = positions.size(),
                 .kernel = taps.size(),
                 .stride = window.stride,
                 .dilation = window.dilation};
  part.read = within(low, low + (positions.size() - 1) * window.stride + part.window.reach(), window.input);
  part.window.input = part.read.size();
  part.window.pad_begin = part.read.begin - low;
  return part;
}

// Position i writes elements i * stride + k * dilation of those that begin at `begin`.
PartWindow transposed_window(const op::Window& window, bsp::Interval positions, bsp::Interval taps) {
  const std::int64_t begin = positions.begin + window.pad_begin - taps.begin * window.dilation;
  PartWindow part;
  part.window = {
      .input = positions.size(), .kernel = taps.size(), .stride = window.stride, .dilation = window.dilation};
  part.read = within(ceil_div(begin - part.window.reach() + 1, window.stride),
                     floor_div(begin + positions.size() - 1, window.stride) + 1, window.output);
  part.window.output = part.read.size();
  part.window.pad_begin = begin - part.read.begin * window.stride;
  return part;
}

}  // namespace superstep::target::ipu
