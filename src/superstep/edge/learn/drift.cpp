#include "superstep/edge/learn/drift.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace superstep::edge {
namespace {

constexpr double warm_up = 5;  // values that the first mean is of

// 2 sum (-1)^(k-1) exp(-2 k^2 x^2)
double kolmogorov_tail(double x) {
  if (x < 0.2) return 1;
  double sum = 0, sign = 1;
  for (int k = 1; k <= 100; ++k, sign = -sign) {
    const double term = std::exp(-2.0 * k * k * x * x);
    sum += sign * term;
    if (term < 1e-12) break;
  }
  return std::clamp(2 * sum, 0.0, 1.0);
}

}  // namespace

FrameFeatures features_of(std::span<const float> frame, std::int64_t width) {
  double sum = 0, largest = 0, x_sum = 0, y_sum = 0, squares = 0, zeros = 0;
  const auto columns = static_cast<std::size_t>(width);
  for (std::size_t i = 0; i < frame.size(); ++i) {
    const double value = std::max(0.0f, frame[i]), x = static_cast<double>(i % columns),
                 y = static_cast<double>(i / columns);
    sum += value, largest = std::max(largest, value);
    x_sum += value * x, y_sum += value * y, squares += value * (x * x + y * y);
    zeros += value == 0;
  }
  const double all = static_cast<double>(frame.size());
  if (sum <= 0) return {0, 0, 0, 0, 1};
  const double x = x_sum / sum, y = y_sum / sum;
  const double middle_x = static_cast<double>(columns - 1) / 2,
               middle_y = static_cast<double>(frame.size() / columns - 1) / 2;
  return {sum, largest, std::hypot(x - middle_x, y - middle_y),
          std::sqrt(std::max(0.0, squares / sum - x * x - y * y)), zeros / all};
}

const char* name_of_feature(std::size_t feature) {
  constexpr const char* names[] = {"sum", "maximum", "centroid", "spread", "zeros"};
  return names[feature];
}

KolmogorovSmirnov kolmogorov_smirnov(std::vector<double> a, std::vector<double> b) {
  if (a.empty() || b.empty()) return {};
  std::ranges::sort(a);
  std::ranges::sort(b);
  const double n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  double distance = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double value = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= value) ++i;
    while (j < b.size() && b[j] <= value) ++j;
    distance = std::max(distance, std::abs(static_cast<double>(i) / n - static_cast<double>(j) / m));
  }
  const double root = std::sqrt(n * m / (n + m));
  return {distance, kolmogorov_tail((root + 0.12 + 0.11 / root) * distance)};
}

std::vector<bool> holm(std::span<const double> probabilities, double level) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return probabilities[i]; });
  std::vector<bool> refused(probabilities.size(), false);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    if (probabilities[order[rank]] > level / static_cast<double>(order.size() - rank)) break;
    refused[order[rank]] = true;
  }
  return refused;
}

InputDrift input_drift(std::span<const FrameFeatures> reference, std::span<const FrameFeatures> now,
                       double level) {
  InputDrift drift;
  std::array<double, frame_features> probabilities{};
  for (std::size_t feature = 0; feature < frame_features; ++feature) {
    std::vector<double> a, b;
    for (const FrameFeatures& one : reference) a.push_back(one[feature]);
    for (const FrameFeatures& one : now) b.push_back(one[feature]);
    drift.features[feature] = kolmogorov_smirnov(std::move(a), std::move(b));
    probabilities[feature] = drift.features[feature].probability;
  }
  const std::vector<bool> refused = holm(probabilities, level);
  drift.found = std::ranges::find(refused, true) != refused.end();
  return drift;
}

bool PageHinkley::add(double value) {
  ++count_;
  mean_ += (value - mean_) / static_cast<double>(count_);
  if (static_cast<double>(count_) <= warm_up) {
    scale_ = mean_;
    return false;
  }
  if (scale_ <= 0) return false;
  sum_ += (value - mean_) / scale_ - slack_;
  least_ = std::min(least_, sum_);
  return statistic() > threshold_;
}

void PageHinkley::forget() {
  mean_ = sum_ = least_ = scale_ = 0;
  count_ = 0;
}

}  // namespace superstep::edge
