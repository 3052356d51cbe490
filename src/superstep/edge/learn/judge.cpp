#include "superstep/edge/learn/judge.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/base/statistics.h"

namespace superstep::edge {

double lower_bound_of_gain(std::span<const double> before, std::span<const double> after, std::uint64_t seed,
                           int draws) {
  if (before.empty()) return 0;
  std::vector<double> means;
  for (int draw = 0; draw < draws; ++draw) {
    RandomStream random(seed, static_cast<std::uint64_t>(draw));
    double sum = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::size_t at = random.below(before.size());
      sum += before[at] - after[at];
    }
    means.push_back(sum / static_cast<double>(before.size()));
  }
  std::ranges::sort(means);
  constexpr double left_out = 0.05;
  return means[static_cast<std::size_t>(left_out * static_cast<double>(draws))];
}

double standard_error_of_gain(std::span<const double> before, std::span<const double> after) {
  const double count = static_cast<double>(before.size());
  if (count < 2) return 0;
  const double gain = mean(before) - mean(after);
  double squares = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double away = before[i] - after[i] - gain;
    squares += away * away;
  }
  return std::sqrt(squares / (count - 1) / count);
}

bool is_worse(std::span<const double> now, std::span<const double> before) {
  return mean(now) - mean(before) > 2 * standard_error_of_gain(now, before);
}

}  // namespace superstep::edge
