#include "superstep/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace superstep {

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double quantile(std::span<const double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> ordered(values.begin(), values.end());
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(ordered.size() - 1);
  const auto lower = ordered.begin() + static_cast<std::ptrdiff_t>(std::floor(at));
  std::nth_element(ordered.begin(), lower, ordered.end());
  const double fraction = at - std::floor(at);
  if (fraction == 0) return *lower;
  return *lower + fraction * (*std::min_element(lower + 1, ordered.end()) - *lower);
}

double nearest_rank(std::span<const double> sorted, double share) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = std::ceil(share * static_cast<double>(sorted.size()) - 1e-9);  // 0.95 x 20 is 19
  return sorted[static_cast<std::size_t>(std::clamp(rank, 1.0, static_cast<double>(sorted.size()))) - 1];
}

}  // namespace superstep
