#include "superstep/target/cpu/kernels/convolution/plane_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "superstep/base/integers.h"

namespace superstep::kernels {

PlaneLines::PlaneLines(const Planes& x, const Window& window, std::int64_t columns)
    : x_(x),
      window_(window),
      copy_(x.type == ElementType::f32 ? planar_loops().line_of_f32 : planar_loops().line_of_bf16) {
  slots_ = (window.height - 1) * window.dilation_h + 1;
  line_ = round_up(columns, planar_loops().lanes) + (window.width - 1) * window.dilation_w;
  inside_ = std::clamp<std::int64_t>(line_ - window.pad_left, 0, x.width);
}

void PlaneLines::fill(const void* x, float* memory, std::int64_t sample, std::int64_t row) const {
  const auto element = static_cast<std::int64_t>(size_in_bytes(x_.type));
  const std::int64_t left = std::min(window_.pad_left, line_);
  for (std::int64_t c = 0; c < x_.channels; ++c) {
    float* const line = at(memory, row, c);
    const std::int64_t from = sample * x_.sample + c * x_.channel + row * x_.row;
    std::fill_n(line, left, 0.0f);
    fetch_next_row(static_cast<const std::byte*>(x) + from * element, x_.row * element);
    copy_(static_cast<const std::byte*>(x) + from * element, inside_, line + left);
    std::fill(line + left + inside_, line + line_, 0.0f);
  }
}

TapRange PlaneLines::advance(Progress& progress, const void* x, float* memory, std::int64_t sample,
                             std::int64_t row) const {
  if (progress.sample != sample) progress = {sample, 0};
  const TapRange taps =
      valid_taps(row, window_.height, window_.stride_h, window_.dilation_h, window_.pad_top, x_.height);
  if (taps.begin >= taps.end) return taps;
  // A row that dilated taps step over now may be another row's.
  std::int64_t& filled = progress.filled;
  filled = std::max({filled, top(row), std::int64_t{0}});
  for (; filled <= top(row) + (taps.end - 1) * window_.dilation_h; ++filled) fill(x, memory, sample, filled);
  return taps;
}

std::string fault_of(const Planes& planes, std::int64_t batch) {
  if (planes.channels < 1 || planes.height < 1 || planes.width < 1 || batch < 1)
    return "an extent is not positive";
  if (planes.channels > most_planar_channels)
    return fmt::format("more than {} channels", most_planar_channels);
  if (planes.type != ElementType::f32 && planes.type != ElementType::bf16)
    return "planes must be f32 or bf16";
  if (planes.height > 1 && planes.row < planes.width) return "rows of a plane overlap";
  return {};
}

std::string fault_over_planes(const Window& window) {
  if (std::string fault = fault_of(window); !fault.empty()) return fault;
  if (window.depth != 1) return "a window over three axes";
  if (window.stride_w != 1) return "the window goes on by more than a column";
  if (window.pad_left < 0 || window.pad_top < 0) return "a negative padding";
  return {};
}

double multiply_adds_over_planes(const Planes& x, const Window& w, const Planes& y, std::int64_t batch) {
  const auto taps_along = [](std::int64_t taps, std::int64_t stride, std::int64_t dilation, std::int64_t pad,
                             std::int64_t input, std::int64_t output) {
    double count = 0;
    for (std::int64_t o = 0; o < output; ++o) {
      const TapRange range = valid_taps(o, taps, stride, dilation, pad, input);
      count += static_cast<double>(std::max<std::int64_t>(0, range.end - range.begin));
    }
    return count;
  };
  return taps_along(w.height, w.stride_h, w.dilation_h, w.pad_top, x.height, y.height) *
         taps_along(w.width, w.stride_w, w.dilation_w, w.pad_left, x.width, y.width) *
         static_cast<double>(batch * x.channels);
}

double bytes_of(const Planes& planes, std::int64_t batch) {
  return static_cast<double>(batch * planes.channels * planes.height * planes.width) *
         static_cast<double>(size_in_bytes(planes.type));
}

}  // namespace superstep::kernels
