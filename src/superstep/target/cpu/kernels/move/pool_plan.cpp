#include "superstep/target/cpu/kernels/move/pool_plan.h"

#include <fmt/format.h>

namespace superstep::kernels {

namespace {

double bytes_of(const Image& image) {
  return static_cast<double>(image.element_count()) * static_cast<double>(size_in_bytes(image.type));
}

const char* name_of(Pooling pooling) { return pooling == Pooling::max ? "max" : "average"; }

}  // namespace

Convolution as_convolution(const Pool& pool) {
  Convolution c;
  c.x = pool.x;
  c.y = pool.y;
  c.window = pool.window;
  return c;
}

KernelInfo describe_pooling(const Pool& pool, bool gradient) {
  const bool with_argmax = pool.pooling == Pooling::max && (gradient || pool.save_argmax);
  KernelInfo info;
  const Window& w = pool.window;
  info.name = fmt::format("{} pooling{}, {}{} x {}", name_of(pool.pooling), gradient ? " gradient" : "",
                          pool.x.planes > 1 ? fmt::format("{} x ", w.depth) : "", w.height, w.width);
  info.flops = multiply_adds(as_convolution(pool)) / static_cast<double>(pool.x.channels);
  info.bytes =
      bytes_of(pool.x) + bytes_of(pool.y) + (with_argmax ? static_cast<double>(pool.y.element_count()) : 0);
  info.inputs = gradient && with_argmax ? 2 : 1;
  info.outputs = !gradient && with_argmax ? 2 : 1;
  return info;
}

}  // namespace superstep::kernels
