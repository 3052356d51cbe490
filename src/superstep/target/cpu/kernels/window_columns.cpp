#include "superstep/target/cpu/kernels/window_columns.h"

#include <fmt/format.h>

#include <cstring>

namespace superstep::kernels {

namespace {

constexpr std::int64_t most_channels = 8;

class WindowColumnsKernel final : public Kernel {
 public:
  WindowColumnsKernel(KernelInfo info, const WindowColumns& c)
      : Kernel(std::move(info)), c_(c), depth_(c.window.width * c.x.channels) {}

  void run(const Arguments& arguments) const override {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    const std::int64_t row = c_.outputs * c_.x.batch * depth_;
    for (std::int64_t h = 0; h < c_.x.height; ++h)
      for (std::int64_t o = 0; o < c_.outputs; ++o)
        copy_window(x + h * c_.x.row_stride, o, y + h * row + o * c_.x.batch * depth_);
  }

 private:
  void copy_window(const float* row, std::int64_t o, float* y) const {
    const std::int64_t first = o * c_.window.stride_w - c_.window.pad_left;
    const std::int64_t last = first + (c_.window.width - 1) * c_.window.dilation_w;
    const bool inside = first >= 0 && last < c_.x.width;
    if (inside && c_.x.batch == 1 && c_.window.dilation_w == 1 && c_.x.column_stride == c_.x.channels) {
      std::memcpy(y, row + first * c_.x.channels, static_cast<std::size_t>(depth_) * sizeof(float));
      return;
    }
    for (std::int64_t k = 0; k < c_.window.width; ++k) {
      const std::int64_t column = first + k * c_.window.dilation_w;
      copy_column(column >= 0 && column < c_.x.width ? row + c_.x.offset(0, column) : nullptr,
                  y + k * c_.x.channels);
    }
  }

  // One tap of all samples; zeros where `from` is null.
  void copy_column(const float* from, float* y) const {
    for (std::int64_t n = 0; n < c_.x.batch; ++n, y += depth_)
      for (std::int64_t c = 0; c < c_.x.channels; ++c)
        y[c] = from ? from[n * c_.x.column_stride + c] : 0.0f;
  }

  WindowColumns c_;
  std::int64_t depth_;
};

}  // namespace

Image columns_image(const WindowColumns& c) {
  return dense_image(c.x.height, c.outputs, c.x.batch, c.window.width * c.x.channels);
}

Prepared prepare(const WindowColumns& c) {
  if (std::string fault = fault_of(c.x) + fault_of(c.window); !fault.empty()) return refuse("window columns", fault);
  if (c.x.type != ElementType::f32) return refuse("window columns", "the image is not f32");
  if (c.x.channels > most_channels) return refuse("window columns", "more than 8 channels");
  if (c.outputs < 1) return refuse("window columns", "there are no outputs");
  const Image y = columns_image(c);
  KernelInfo info;
  info.name = fmt::format("columns of windows, {} taps of {} channels", c.window.width, c.x.channels);
  info.bytes = 4 * static_cast<double>(c.x.element_count() + y.element_count());
  info.inputs = info.outputs = 1;
  return std::make_unique<WindowColumnsKernel>(std::move(info), c);
}

}  // namespace superstep::kernels
