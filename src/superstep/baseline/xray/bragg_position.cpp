#include "superstep/baseline/xray/bragg_position.h"

#include <algorithm>

#include "superstep/base/error.h"

namespace superstep::baseline {
namespace {

constexpr double background_share = 0.2;

// The value that a fifth of the pixels are below: number 25 of 121, counted from 1.
float background_of(std::span<const float> patch) {
  std::vector<float> sorted(patch.begin(), patch.end());
  const auto rank = static_cast<std::ptrdiff_t>(background_share * static_cast<double>(patch.size()));
  std::ranges::nth_element(sorted, sorted.begin() + rank);
  return sorted[static_cast<std::size_t>(rank)];
}

}  // namespace

PeakPosition brightest_pixel(std::span<const float> patch, int size) {
  const auto at = static_cast<int>(std::ranges::max_element(patch) - patch.begin());
  return {double(at % size), double(at / size)};
}

PeakPosition centroid(std::span<const float> patch, int size) {
  const float background = background_of(patch);
  double total = 0, column = 0, row = 0;
  for (int i = 0; i < size * size; ++i) {
    const double weight = std::max(patch[static_cast<std::size_t>(i)] - background, 0.0f);
    total += weight;
    column += weight * (i % size);
    row += weight * (i / size);
  }
  if (total > 0) return {column / total, row / total};
  return brightest_pixel(patch, size);
}

std::span<const std::string> bragg_method_names() {
  static const std::vector<std::string> names{"rotated", "axis-aligned", "centroid", "brightest"};
  return names;
}

PeakFit locate(BraggMethod method, std::span<const float> patch, int size) {
  switch (method) {
    case BraggMethod::rotated: return fit_rotated(patch, size);
    case BraggMethod::axis_aligned: return fit_axis_aligned(patch, size);
    case BraggMethod::centroid: return {.position = centroid(patch, size)};
    case BraggMethod::brightest: return {.position = brightest_pixel(patch, size)};
  }
  throw Error(ErrorCode::internal, "method out of range");
}

}  // namespace superstep::baseline
