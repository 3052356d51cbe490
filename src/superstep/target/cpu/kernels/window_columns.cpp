#include "superstep/target/cpu/kernels/window_columns.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

namespace superstep::kernels {

namespace {

constexpr std::int64_t most_channels = 8;

class WindowColumnsKernel final : public Kernel {
 public:
  WindowColumnsKernel(KernelInfo info, const WindowColumns& c)
      : Kernel(std::move(info)), c_(c), depth_(c.window.width * c.channels) {
    for (std::int64_t k = 0; k < c_.window.width; ++k) ranges_.push_back(range_of(k));
  }

  // Row by row, so that what is written stays in the first-level cache over all taps and samples.
  void run(const Arguments& arguments) const override {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    const std::int64_t row = c_.outputs * c_.batch * depth_;
    for (std::int64_t h = 0; h < c_.height; ++h, y += row) {
      if (pads_) std::memset(y, 0, static_cast<std::size_t>(row) * sizeof(float));
      for (std::int64_t n = 0; n < c_.batch; ++n)
        for (std::int64_t k = 0; k < c_.window.width; ++k)
          for (std::int64_t c = 0; c < c_.channels; ++c)
            copy_tap(x + h * c_.row + n * c_.sample + c * c_.channel, k, y + n * depth_ + k * c_.channels + c);
    }
  }

 private:
  struct Range {
    std::int64_t begin, end;  // outputs whose tap lies inside
  };

  Range range_of(std::int64_t k) {
    const TapRange range =
        valid_outputs(k, c_.window.stride_w, c_.window.dilation_w, c_.window.pad_left, c_.width, c_.outputs);
    pads_ |= range.begin > 0 || range.end < c_.outputs;
    return {range.begin, range.end};
  }

  void copy_tap(const float* line, std::int64_t k, float* y) const {
    const Range range = ranges_[static_cast<std::size_t>(k)];
    const std::int64_t from = c_.window.stride_w * c_.column, to = c_.batch * depth_;
    const std::int64_t first = k * c_.window.dilation_w - c_.window.pad_left;
    line += first * c_.column + range.begin * from;
    y += range.begin * to;
    for (std::int64_t o = range.begin; o < range.end; ++o, line += from, y += to) *y = *line;
  }

  WindowColumns c_;
  std::int64_t depth_;
  bool pads_ = false;
  std::vector<Range> ranges_;
};

}  // namespace

Image columns_image(const WindowColumns& c) {
  return dense_image(c.height, c.outputs, c.batch, c.window.width * c.channels);
}

Prepared prepare(const WindowColumns& c) {
  if (std::string fault = fault_of(c.window); !fault.empty()) return refuse("window columns", fault);
  if (c.channels > most_channels) return refuse("window columns", "more than 8 channels");
  if (c.outputs < 1 || c.height < 1 || c.width < 1 || c.batch < 1 || c.channels < 1)
    return refuse("window columns", "an extent is not positive");
  const Image y = columns_image(c);
  KernelInfo info;
  info.name = fmt::format("columns of windows, {} taps of {} channels", c.window.width, c.channels);
  info.bytes = 4 * static_cast<double>(c.height * c.width * c.batch * c.channels + y.element_count());
  info.inputs = info.outputs = 1;
  return std::make_unique<WindowColumnsKernel>(std::move(info), c);
}

}  // namespace superstep::kernels
