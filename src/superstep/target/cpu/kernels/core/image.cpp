#include "superstep/target/cpu/kernels/core/image.h"

#include <algorithm>

#include "superstep/base/integers.h"

namespace superstep::kernels {

namespace {

// Smallest integer not below a / b, for b > 0.
// Half-open range of integers i in [0, count) with 0 <= i * step + start < limit.
TapRange inside(std::int64_t count, std::int64_t step, std::int64_t start, std::int64_t limit) {
  const std::int64_t begin = std::clamp<std::int64_t>(ceil_div(-start, step), 0, count);
  const std::int64_t end = std::clamp<std::int64_t>(ceil_div(limit - start, step), begin, count);
  return {begin, end};
}

}  // namespace

Image dense_image(std::int64_t height, std::int64_t width, std::int64_t batch, std::int64_t channels,
                  ElementType type) {
  return {height, width, batch, channels, channels, width * batch * channels, type};
}

std::int64_t extent_of(const Image& image) {
  if (image.element_count() == 0) return 0;
  return (image.height - 1) * image.row_stride + (image.columns() - 1) * image.column_stride + image.channels;
}

std::string fault_of(const Image& image) {
  if (image.height < 1 || image.width < 1 || image.batch < 1 || image.channels < 1)
    return "an extent of the image is not positive";
  if (image.planes < 1 || image.height % image.planes != 0) return "the image's rows are no whole planes";
  if (image.column_stride < image.channels && image.columns() * image.height > 1)
    return "the image's columns overlap";
  if (image.height > 1 && image.row_stride < (image.columns() - 1) * image.column_stride + image.channels)
    return "the image's rows overlap";
  return {};
}

std::string fault_of(const Window& window) {
  if (std::min({window.depth, window.height, window.width}) < 1) return "the window has no taps";
  if (std::min({window.stride_d, window.stride_h, window.stride_w}) < 1)
    return "a stride of the window is not positive";
  if (std::min({window.dilation_d, window.dilation_h, window.dilation_w}) < 1)
    return "a dilation of the window is not positive";
  return {};
}

std::string fault_of(const Image& x, const Image& y, const Window& window, std::int64_t groups) {
  for (const Image* image : {&x, &y})
    if (std::string fault = fault_of(*image); !fault.empty()) return fault;
  if (std::string fault = fault_of(window); !fault.empty()) return fault;
  if (x.batch != y.batch) return "input and output differ in their micro-batch";
  if (groups < 1 || x.channels % groups != 0 || y.channels % groups != 0)
    return "the groups do not divide the channels";
  return {};
}

std::string volume_fault(const Image& x, const Image& y, const Window& window) {
  const bool flat = x.planes == 1 && y.planes == 1 && window.depth == 1 && window.pad_front == 0;
  return flat ? "" : "the window goes over volumes";
}

TapRange valid_taps(std::int64_t o, std::int64_t taps, std::int64_t stride, std::int64_t dilation,
                    std::int64_t pad, std::int64_t input) {
  return inside(taps, dilation, o * stride - pad, input);
}

TapRange valid_outputs(std::int64_t k, std::int64_t stride, std::int64_t dilation, std::int64_t pad,
                       std::int64_t input, std::int64_t output) {
  return inside(output, stride, k * dilation - pad, input);
}

}  // namespace superstep::kernels
