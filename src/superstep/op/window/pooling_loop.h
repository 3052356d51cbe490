// Walking over the windows of pooling.
#pragma once

#include <array>
#include <span>

#include "superstep/op/core/checks.h"
#include "superstep/op/product/convolution_loop.h"
#include "superstep/op/window/pooling.h"

namespace superstep::op {

// Calls body(output, taps) for each window of one plane: the output's position in its plane and the
// positions in the input's plane of the taps that are not padding, row by row.
template <class Body>
void for_each_window(const std::vector<Window>& windows, Body&& body) {
  const std::array<Window, 3> axes = three_axes(windows);
  const auto& [d, h, v] = axes;
  const auto first = [](const Window& w, std::int64_t o) { return o * w.stride - w.pad_begin; };
  const auto inside = [](const Window& w, std::int64_t i) { return i >= 0 && i < w.input; };
  std::vector<std::int64_t> taps;
  std::int64_t output = 0;
  for (std::int64_t od = 0; od < d.output; ++od)
    for (std::int64_t oh = 0; oh < h.output; ++oh)
      for (std::int64_t ov = 0; ov < v.output; ++ov, ++output) {
        taps.clear();
        for (std::int64_t kd = 0; kd < d.kernel; ++kd)
          for (std::int64_t kh = 0; kh < h.kernel; ++kh)
            for (std::int64_t kv = 0; kv < v.kernel; ++kv) {
              const std::int64_t id = first(d, od) + kd * d.dilation, ih = first(h, oh) + kh * h.dilation;
              const std::int64_t iv = first(v, ov) + kv * v.dilation;
              if (inside(d, id) && inside(h, ih) && inside(v, iv))
                taps.push_back((id * h.input + ih) * v.input + iv);
            }
        body(output, std::span<const std::int64_t>(taps));
      }
}

inline void check_pooling_rank(const Shape& x) {
  require(x.rank() >= 3 && x.rank() <= 2 + max_spatial_axes,
          "input X is of rank " + std::to_string(x.rank()) + ", expected 3 to 5");
}

inline std::vector<Window> windows_of(const Attributes& attributes, const Shape& x) {
  check_pooling_rank(x);
  return pooling_windows(attributes, spatial_extents(x));
}

inline Shape pooled_shape(const Shape& x, const std::vector<Window>& windows) {
  std::vector<std::int64_t> extents = {x[0], x[1]};
  for (const Window& window : windows) extents.push_back(window.output);
  return Shape(extents);
}

inline std::int64_t plane_size(const Shape& shape) {
  std::int64_t size = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) size *= shape[axis];
  return size;
}

inline double pooling_flops(const Attributes& attributes, std::span<const ValueType>,
                            std::span<const ValueType> outputs) {
  double flops = static_cast<double>(outputs[0].shape.element_count());
  for (std::int64_t extent : attributes.integers("kernel_shape")) flops *= static_cast<double>(extent);
  return flops;
}

Attributes to_attributes(const PoolAttributes& attributes);

}  // namespace superstep::op
