#include "superstep/baseline/imaging/ms_ssim.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace superstep::baseline {
namespace {

constexpr int window_pixels = 11;
constexpr double window_sigma = 1.5, least_luminance = 0.01 * 0.01, least_contrast = 0.03 * 0.03;
constexpr double scale_weights[] = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};  // as published

struct Plane {
  std::vector<double> values;
  int width = 0, height = 0;
  double at(int y, int x) const {
    return values[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
};

std::vector<double> window_of(int pixels) {
  std::vector<double> taps;
  double sum = 0;
  for (int i = 0; i < pixels; ++i) {
    const double x = i - 0.5 * (pixels - 1);
    taps.push_back(std::exp(-x * x / (2 * window_sigma * window_sigma)));
    sum += taps.back();
  }
  for (double& tap : taps) tap /= sum;
  return taps;
}

struct Moments {
  double a = 0, b = 0, aa = 0, bb = 0, ab = 0;
};

Moments moments_at(const Plane& a, const Plane& b, int top, int left, const std::vector<double>& taps) {
  Moments sums;
  for (int j = 0; j < static_cast<int>(taps.size()); ++j)
    for (int i = 0; i < static_cast<int>(taps.size()); ++i) {
      const double weight = taps[static_cast<std::size_t>(j)] * taps[static_cast<std::size_t>(i)];
      const double x = a.at(top + j, left + i), y = b.at(top + j, left + i);
      sums.a += weight * x;
      sums.b += weight * y;
      sums.aa += weight * x * x;
      sums.bb += weight * y * y;
      sums.ab += weight * x * y;
    }
  return sums;
}

struct Similarity {
  double structure = 0, whole = 0;  // means over the windows: contrast and structure, and with luminance
};

Similarity similarity(const Plane& a, const Plane& b) {
  const auto taps = window_of(std::min({window_pixels, a.width, a.height}));
  const int size = static_cast<int>(taps.size());
  Similarity sum;
  for (int top = 0; top + size <= a.height; ++top)
    for (int left = 0; left + size <= a.width; ++left) {
      const Moments m = moments_at(a, b, top, left, taps);
      const double luminance = (2 * m.a * m.b + least_luminance) / (m.a * m.a + m.b * m.b + least_luminance);
      const double structure =
          (2 * (m.ab - m.a * m.b) + least_contrast) / (m.aa - m.a * m.a + m.bb - m.b * m.b + least_contrast);
      sum.structure += structure;
      sum.whole += luminance * structure;
    }
  const double windows = static_cast<double>(a.height - size + 1) * (a.width - size + 1);
  return {sum.structure / windows, sum.whole / windows};
}

Plane halved(const Plane& plane) {
  Plane half{{}, plane.width / 2, plane.height / 2};
  for (int y = 0; y < half.height; ++y)
    for (int x = 0; x < half.width; ++x)
      half.values.push_back((plane.at(2 * y, 2 * x) + plane.at(2 * y, 2 * x + 1) +
                             plane.at(2 * y + 1, 2 * x) + plane.at(2 * y + 1, 2 * x + 1)) /
                            4);
  return half;
}

}  // namespace

double ms_ssim(std::span<const float> a, std::span<const float> b, int width, int height) {
  Plane x{{a.begin(), a.end()}, width, height}, y{{b.begin(), b.end()}, width, height};
  double logarithm = 0, weights = 0;
  for (std::size_t scale = 0; scale < std::size(scale_weights); ++scale) {
    const bool last =
        scale + 1 == std::size(scale_weights) || std::min(x.width, x.height) / 2 < window_pixels;
    const Similarity alike = similarity(x, y);
    // Pictures that are each other's opposite have a structure below zero, of which no power can be taken.
    logarithm += scale_weights[scale] * std::log(std::max(1e-12, last ? alike.whole : alike.structure));
    weights += scale_weights[scale];
    if (last) break;
    x = halved(x);
    y = halved(y);
  }
  return std::exp(logarithm / weights);
}

}  // namespace superstep::baseline
