#include "superstep/target/ipu/cut/window_range.h"

#include <algorithm>

#include "superstep/base/integers.h"

namespace superstep::target::ipu {
namespace {}  // namespace

WindowRange forward_range(const op::Window& window, bsp::Interval positions) {
  const std::int64_t low = positions.begin * window.stride - window.pad_begin,
                     high = (positions.end - 1) * window.stride - window.pad_begin + window.reach();
  WindowRange range;
  range.read = {std::clamp<std::int64_t>(low, 0, window.input),
                std::clamp<std::int64_t>(high, 0, window.input)};
  range.pad_begin = range.read.begin - low;
  range.pad_end = high - range.read.end;
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

}  // namespace superstep::target::ipu
