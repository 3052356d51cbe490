// The loop that a convolution and its two gradients have in common.
#pragma once

#include <array>
#include <vector>

#include "superstep/op/product/convolution.h"

namespace superstep::op {

// Three spatial axes whatever the rank, missing ones in front of extent 1.
inline std::array<Window, 3> three_axes(const std::vector<Window>& windows) {
  std::array<Window, 3> axes;
  std::copy_backward(windows.begin(), windows.end(), axes.end());
  return axes;
}

// Calls row(x, w, y, count) for every run of outputs along the last axis: y[y + j] belongs to
// x[x + j * stride] and to the weight w, for j in [0, count), stride being the last window's.
template <class Row>
void for_each_row(const ConvGeometry& geometry, Row&& row) {
  const auto [d, h, v] = three_axes(geometry.windows);
  const std::int64_t x_plane = d.input * h.input * v.input, y_plane = d.output * h.output * v.output;
  const std::int64_t channels = geometry.group * geometry.in_per_group;
  const std::int64_t maps = geometry.group * geometry.out_per_group;
  struct Range {
    std::int64_t first, last;
  };
  // Outputs whose tap lies inside, of every tap.
  const auto ranges_of = [](const Window& window) {
    std::vector<Range> ranges;
    for (std::int64_t k = 0; k < window.kernel; ++k)
      ranges.push_back({window.first_output(k), window.last_output(k)});
    return ranges;
  };
  const std::vector<Range> depths = ranges_of(d), heights = ranges_of(h), widths = ranges_of(v);
  const auto plane = [&](std::int64_t x, std::int64_t w, std::int64_t y) {
    for (std::int64_t kd = 0; kd < d.kernel; ++kd)
      for (std::int64_t kh = 0; kh < h.kernel; ++kh)
        for (std::int64_t kv = 0; kv < v.kernel; ++kv, ++w) {
          const auto [first, last] = widths[static_cast<std::size_t>(kv)];
          const Range depth = depths[static_cast<std::size_t>(kd)],
                      height = heights[static_cast<std::size_t>(kh)];
          if (first >= last) continue;
          const std::int64_t column = first * v.stride - v.pad_begin + kv * v.dilation;
          for (std::int64_t od = depth.first; od < depth.last; ++od)
            for (std::int64_t oh = height.first; oh < height.last; ++oh) {
              const std::int64_t id = od * d.stride - d.pad_begin + kd * d.dilation;
              const std::int64_t ih = oh * h.stride - h.pad_begin + kh * h.dilation;
              row(x + (id * h.input + ih) * v.input + column, w, y + (od * h.output + oh) * v.output + first,
                  last - first);
            }
        }
  };
  const std::int64_t taps = d.kernel * h.kernel * v.kernel;
  for (std::int64_t n = 0; n < geometry.batch; ++n)
    for (std::int64_t m = 0; m < maps; ++m)
      for (std::int64_t c = 0; c < geometry.in_per_group; ++c) {
        const std::int64_t channel = m / geometry.out_per_group * geometry.in_per_group + c;
        plane((n * channels + channel) * x_plane, (m * geometry.in_per_group + c) * taps,
              (n * maps + m) * y_plane);
      }
}

}  // namespace superstep::op
