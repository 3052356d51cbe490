#include "superstep/physics/xray/ptycho_stitch.h"

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

// A position that came through metres is whole again when it is so to a millionth of a pixel.
double snapped(double position) {
  const double whole = std::round(position);
  return std::abs(position - whole) < 1e-6 ? whole : position;
}

}  // namespace

Stitcher::Stitcher(int height, int width)
    : height_(height),
      width_(width),
      sum_(static_cast<std::size_t>(height) * static_cast<std::size_t>(width)),
      hits_(sum_.size()) {}

void Stitcher::deposit(int y, int x, double weight, double value) {
  if (weight == 0 || y < 0 || x < 0 || y >= height_ || x >= width_) return;
  const std::size_t at =
      static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
  sum_[at] += weight * value;
  hits_[at] += weight;
}

void Stitcher::add_pixel(double y, double x, double value) {
  const double y0 = std::floor(y), x0 = std::floor(x), fy = y - y0, fx = x - x0;
  const int row = static_cast<int>(y0), column = static_cast<int>(x0);
  deposit(row, column, (1 - fy) * (1 - fx), value);
  deposit(row, column + 1, (1 - fy) * fx, value);
  deposit(row + 1, column, fy * (1 - fx), value);
  deposit(row + 1, column + 1, fy * fx, value);
}

void Stitcher::add(std::span<const float> patch, int n, double top, double left, int central) {
  if (n < 1 || patch.size() != static_cast<std::size_t>(n) * n || central < 1 || central > n)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the central {} px of a patch of {} values with {} px a side", central, patch.size(), n),
        "stitching");
  const int first = (n - central) / 2;
  top = snapped(top);
  left = snapped(left);
  for (int y = first; y < first + central; ++y)
    for (int x = first; x < first + central; ++x)
      add_pixel(top + y, left + x, patch[static_cast<std::size_t>(y) * n + static_cast<std::size_t>(x)]);
}

Map Stitcher::mean() const {
  Map map(height_, width_);
  for (std::size_t i = 0; i < sum_.size(); ++i)
    map.values[i] = hits_[i] > 0 ? static_cast<float>(sum_[i] / hits_[i]) : 0.0f;
  return map;
}

double correlation(std::span<const float> a, std::span<const float> b, std::span<const double> weight) {
  double count = 0, sum_a = 0, sum_b = 0, aa = 0, bb = 0, ab = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (weight[i] > 0) {
      ++count;
      sum_a += a[i];
      sum_b += b[i];
    }
  for (std::size_t i = 0; i < a.size(); ++i)
    if (weight[i] > 0) {
      const double da = a[i] - sum_a / count, db = b[i] - sum_b / count;
      aa += da * da;
      bb += db * db;
      ab += da * db;
    }
  return ab / std::sqrt(aa * bb);
}

void remove_circular_mean(std::span<float> phase) {
  std::complex<double> sum = 0;
  for (const float value : phase) sum += std::polar(1.0, static_cast<double>(value));
  const double mean = std::arg(sum);
  for (float& value : phase) value = static_cast<float>(std::remainder(value - mean, 2 * std::numbers::pi));
}

}  // namespace superstep::data
