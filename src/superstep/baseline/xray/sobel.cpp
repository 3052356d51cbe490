#include "superstep/baseline/xray/sobel.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/base/error.h"

namespace superstep::baseline {
namespace {

using Taps = std::vector<std::int32_t>;

Taps convolved(const Taps& a, const Taps& b) {
  Taps result(a.size() + b.size() - 1);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) result[i + j] += a[i] * b[j];
  return result;
}

Taps binomial(int size) {
  Taps taps{1};
  for (int i = 1; i < size; ++i) taps = convolved(taps, {1, 1});
  return taps;
}

void require_size(int size) {
  if (size != 3 && size != 5 && size != 7 && size != 9)
    throw Error(ErrorCode::invalid_argument, fmt::format("a window of {}: 3, 5, 7 and 9 can be had", size),
                "Sobel filter");
}

void require_frame(const SobelFrame& frame) {
  if (frame.height < 1 || frame.width < 1 ||
      frame.pixels.size() != static_cast<std::size_t>(frame.height) * static_cast<std::size_t>(frame.width))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} pixels for a frame of {} x {}", frame.pixels.size(), frame.height, frame.width),
        "Sobel filter");
}

// Adds weight * in, moved by `shift` columns, to out; what comes from outside the row is 0.
template <class T>
void add_shifted(std::int32_t* out, const T* in, std::int32_t weight, int shift, int width) {
  const int begin = std::max(0, -shift), end = std::min(width, width - shift);
  for (int x = begin; x < end; ++x) out[x] += weight * in[x + shift];
}

// Applies `taps` along rows and then `column_taps` along columns.
std::vector<std::int32_t> separable(const SobelFrame& frame, const Taps& row_taps, const Taps& column_taps) {
  const int half = static_cast<int>(row_taps.size()) / 2;
  const auto width = static_cast<std::size_t>(frame.width);
  std::vector<std::int32_t> along_rows(frame.pixels.size()), result(frame.pixels.size());
  for (int y = 0; y < frame.height; ++y)
    for (int tap = -half; tap <= half; ++tap)
      add_shifted(&along_rows[static_cast<std::size_t>(y) * width],
                  &frame.pixels[static_cast<std::size_t>(y) * width],
                  row_taps[static_cast<std::size_t>(tap + half)], tap, frame.width);
  for (int y = 0; y < frame.height; ++y)
    for (int tap = -half; tap <= half; ++tap)
      if (y + tap >= 0 && y + tap < frame.height)
        add_shifted(&result[static_cast<std::size_t>(y) * width],
                    &along_rows[static_cast<std::size_t>(y + tap) * width],
                    column_taps[static_cast<std::size_t>(tap + half)], 0, frame.width);
  return result;
}

}  // namespace

std::vector<std::int32_t> smoothing_taps(int size) {
  require_size(size);
  return binomial(size);
}

std::vector<std::int32_t> derivative_taps(int size) {
  require_size(size);
  return convolved(binomial(size - 2), {-1, 0, 1});
}

Gradients sobel(const SobelFrame& frame, int size) {
  require_frame(frame);
  const Taps smooth = smoothing_taps(size), derivative = derivative_taps(size);
  return {separable(frame, derivative, smooth), separable(frame, smooth, derivative)};
}

Gradients sobel_by_window(const SobelFrame& frame, int size) {
  require_frame(frame);
  const Taps smooth = smoothing_taps(size), derivative = derivative_taps(size);
  const int half = size / 2;
  Gradients result;
  for (int y = 0; y < frame.height; ++y)
    for (int x = 0; x < frame.width; ++x) {
      std::int64_t gx = 0, gy = 0;
      for (int j = -half; j <= half; ++j)
        for (int i = -half; i <= half; ++i) {
          if (y + j < 0 || y + j >= frame.height || x + i < 0 || x + i >= frame.width) continue;
          const std::int64_t pixel =
              frame.pixels[static_cast<std::size_t>(y + j) * static_cast<std::size_t>(frame.width) +
                           static_cast<std::size_t>(x + i)];
          const auto row = static_cast<std::size_t>(j + half), column = static_cast<std::size_t>(i + half);
          gx += pixel * smooth[row] * derivative[column];
          gy += pixel * derivative[row] * smooth[column];
        }
      result.gx.push_back(static_cast<std::int32_t>(gx));
      result.gy.push_back(static_cast<std::int32_t>(gy));
    }
  return result;
}

std::vector<float> gradient_magnitude(const Gradients& gradients) {
  std::vector<float> magnitude;
  magnitude.reserve(gradients.gx.size());
  for (std::size_t i = 0; i < gradients.gx.size(); ++i) {
    const double gx = gradients.gx[i], gy = gradients.gy[i];
    magnitude.push_back(static_cast<float>(std::sqrt(gx * gx + gy * gy)));
  }
  return magnitude;
}

}  // namespace superstep::baseline
