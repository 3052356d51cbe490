#include "superstep/peaks/image/level.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "superstep/base/error.h"

namespace superstep::peaks {
namespace {

// Enough for a sigma that is known to about a hundredth, and a hundredth of a large frame.
constexpr std::size_t sampled = 1 << 14;
constexpr double below_one_sigma = 0.15866;  // of a normal distribution

// The value that a share of the pixels is below; equal ones are spread over `width`. Orders them anew.
double quantile(std::span<float> pixels, double share, double width) {
  const double place = share * static_cast<double>(pixels.size());
  const auto at =
      pixels.begin() + static_cast<std::ptrdiff_t>(std::min(place, static_cast<double>(pixels.size() - 1)));
  std::ranges::nth_element(pixels, at);
  const float value = *at;
  std::int32_t below = 0, equal = 0;
  for (const float pixel : pixels) below += pixel < value, equal += pixel == value;
  return double{value} + width * ((place - below) / equal - 0.5);
}

std::vector<float> sample_pixels(const Frame& frame) {
  const std::size_t pixels = frame.correction().pixels();
  std::size_t stride = std::max<std::size_t>(1, pixels / sampled);
  // Neither the same columns in every row nor every second one.
  if (stride > 1 && std::cmp_equal(static_cast<std::size_t>(frame.width()) % stride, 0)) ++stride;
  std::vector<float> values;
  values.reserve(pixels / stride + 1);
  for (std::size_t i = stride / 2; i < pixels; i += stride) {
    float value = 0;
    frame.values(i, {&value, 1});
    if (!std::isnan(value)) values.push_back(value);
  }
  return values;
}

}  // namespace

Level level_of(const Frame& frame) {
  std::vector<float> values = sample_pixels(frame);
  if (values.empty()) throw Error(ErrorCode::bad_file, "no pixel of the frame has data");
  const double width = is_floating(frame.type()) ? 0 : 1;
  const double median = quantile(values, 0.5, width);
  return {median, median - quantile(values, below_one_sigma, width)};
}

Threshold threshold_from_text(std::string_view text) {
  constexpr std::string_view unit = "sigma";
  Threshold threshold{.in_sigma = text.ends_with(unit)};
  const std::string_view number = threshold.in_sigma ? text.substr(0, text.size() - unit.size()) : text;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), threshold.value);
  const bool whole = code == std::errc() && end == number.data() + number.size() && !number.empty();
  if (!whole || !std::isfinite(threshold.value) || (threshold.in_sigma && threshold.value <= 0))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no threshold", text), "--threshold",
                "give counts, such as 100, or 8sigma: so far above the background of each frame");
  return threshold;
}

std::string to_text(const Threshold& threshold) {
  return fmt::format("{}{}", threshold.value, threshold.in_sigma ? "sigma" : "");
}

}  // namespace superstep::peaks
