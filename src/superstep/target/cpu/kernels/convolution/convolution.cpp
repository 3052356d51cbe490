#include "superstep/target/cpu/kernels/convolution/convolution.h"

namespace superstep::kernels {

namespace {

// Sum over output positions of one axis of the taps that lie inside.
double tap_count(std::int64_t taps, std::int64_t stride, std::int64_t dilation, std::int64_t pad,
                 std::int64_t input, std::int64_t output) {
  double count = 0;
  for (std::int64_t o = 0; o < output; ++o) {
    const TapRange range = valid_taps(o, taps, stride, dilation, pad, input);
    count += static_cast<double>(range.end - range.begin);
  }
  return count;
}

bool is_float_pair(ElementType type) { return type == ElementType::f32 || type == ElementType::bf16; }

}  // namespace

std::string fault_of(const Convolution& c) {
  if (std::string fault = fault_of(c.x, c.y, c.window, c.groups); !fault.empty()) return fault;
  if (!is_float_pair(c.x.type) || !is_float_pair(c.y.type)) return "images must be f32 or bf16";
  return {};
}

double multiply_adds(const Convolution& c) {
  const Window& w = c.window;
  const double planes = tap_count(w.depth, w.stride_d, w.dilation_d, w.pad_front, c.x.planes, c.y.planes);
  const double rows = tap_count(w.height, w.stride_h, w.dilation_h, w.pad_top, c.x.rows(), c.y.rows());
  const double columns = tap_count(w.width, w.stride_w, w.dilation_w, w.pad_left, c.x.width, c.y.width);
  return planes * rows * columns * static_cast<double>(c.x.batch) *
         static_cast<double>(c.x.channels / c.groups) * static_cast<double>(c.y.channels);
}

Convolution dense_layer(std::int64_t batch, std::int64_t in, std::int64_t out, ElementType type) {
  Convolution layer;
  layer.x = dense_image(1, 1, batch, in, type);
  layer.y = dense_image(1, 1, batch, out, type);
  return layer;
}

}  // namespace superstep::kernels
