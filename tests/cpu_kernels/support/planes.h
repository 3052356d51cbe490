// Planes and windows over them at random, with gaps between rows, channels and samples.
#pragma once

#include <algorithm>
#include <cstdint>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/convolution/planar.h"
#include "tests/cpu_kernels/support/guarded_buffer.h"

namespace superstep::kernels {

inline std::int64_t pick(RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

inline Planes random_planes(RandomStream& random, std::int64_t channels, std::int64_t height,
                            std::int64_t width, std::int64_t batch) {
  const ElementType type = random.below(3) == 0 ? ElementType::bf16 : ElementType::f32;
  Planes planes{.channels = channels, .height = height, .width = width, .type = type};
  planes.row = width + (random.below(2) ? pick(random, 1, 5) : 0);
  planes.channel = height * planes.row + (random.below(2) ? pick(random, 1, 9) : 0);
  planes.sample = channels * planes.channel + (random.below(2) ? pick(random, 1, 9) : 0);
  if (random.below(3) == 0) {  // samples within channels
    planes.sample = height * planes.row;
    planes.channel = batch * planes.sample;
  }
  return planes;
}

// Any window that may go on by one column, over x, and the extents of what it gives.
struct WindowOverPlanes {
  Window window;
  std::int64_t height, width, rows, columns;
};
inline WindowOverPlanes random_window(RandomStream& random) {
  WindowOverPlanes made{};
  Window& w = made.window;
  w.height = pick(random, 1, 6), w.width = pick(random, 1, 7);
  w.stride_h = pick(random, 1, 3);
  w.dilation_h = pick(random, 1, 2), w.dilation_w = pick(random, 1, 3);
  w.pad_top = pick(random, 0, 4), w.pad_left = pick(random, 0, 5);
  made.height = pick(random, 1, 12), made.width = pick(random, 1, 90);
  const auto outputs = [](std::int64_t extent, std::int64_t reach, std::int64_t pad, std::int64_t behind,
                          std::int64_t stride) {
    return std::max<std::int64_t>(1, (extent + pad + behind - reach) / stride + 1);
  };
  made.rows =
      outputs(made.height, (w.height - 1) * w.dilation_h + 1, w.pad_top, pick(random, 0, 3), w.stride_h);
  made.columns = outputs(made.width, (w.width - 1) * w.dilation_w + 1, w.pad_left, pick(random, 0, 6), 1);
  return made;
}

inline GuardedBuffer planes_buffer(const Planes& p, std::int64_t batch, ElementType type) {
  return strided_buffer(type, {batch, p.channels, p.height, p.width}, {p.sample, p.channel, p.row, 1});
}

inline std::int64_t address(const Planes& p, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return n * p.sample + c * p.channel + h * p.row + w;
}

}  // namespace superstep::kernels
