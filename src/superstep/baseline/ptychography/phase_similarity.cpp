#include "superstep/baseline/ptychography/phase_alignment.h"

namespace superstep::baseline {
namespace {

// Sums over windows of `width` along one axis; the result is shorter by width - 1 along it.
std::vector<double> window_sums(const std::vector<double>& values, std::vector<std::size_t>& extents,
                                std::size_t axis, std::size_t width) {
  std::size_t stride = 1;
  for (std::size_t a = axis + 1; a < extents.size(); ++a) stride *= extents[a];
  const std::size_t extent = extents[axis], outer = values.size() / (extent * stride),
                    shorter = extent - width + 1;
  std::vector<double> sums(outer * shorter * stride);
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t k = 0; k < shorter; ++k)
      for (std::size_t offset = 0; offset < width; ++offset)
        for (std::size_t s = 0; s < stride; ++s)
          sums[(o * shorter + k) * stride + s] += values[(o * extent + k + offset) * stride + s];
  extents[axis] = shorter;
  return sums;
}

std::vector<double> window_means(std::vector<double> values, const Shape& shape, std::size_t width) {
  std::vector<std::size_t> extents(shape.begin(), shape.end());
  for (std::size_t axis = 0; axis < 3; ++axis) values = window_sums(values, extents, axis, width);
  for (double& value : values) value /= static_cast<double>(width * width * width);
  return values;
}

}  // namespace

double structural_similarity(std::span<const float> a, std::span<const float> b, const Shape& shape) {
  constexpr std::size_t width = 7;
  constexpr double c1 = 0.01 * 0.01, c2 = 0.03 * 0.03;
  const auto products = [&](std::span<const float> p, std::span<const float> q) {
    std::vector<double> values;
    for (std::size_t i = 0; i < p.size(); ++i) values.push_back(double{p[i]} * q[i]);
    return window_means(values, shape, width);
  };
  const auto mean_a = window_means({a.begin(), a.end()}, shape, width);
  const auto mean_b = window_means({b.begin(), b.end()}, shape, width);
  const auto aa = products(a, a), bb = products(b, b), ab = products(a, b);
  double sum = 0;
  for (std::size_t i = 0; i < aa.size(); ++i) {
    const double ma = mean_a[i], mb = mean_b[i], covariance = ab[i] - ma * mb;
    const double variances = aa[i] - ma * ma + bb[i] - mb * mb;
    sum += (2 * ma * mb + c1) * (2 * covariance + c2) / ((ma * ma + mb * mb + c1) * (variances + c2));
  }
  return sum / static_cast<double>(aa.size());
}

}  // namespace superstep::baseline
