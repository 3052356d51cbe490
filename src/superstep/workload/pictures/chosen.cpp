// Which samples a report shows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "superstep/workload/pictures/pictures.h"

namespace superstep::workload {

std::vector<Chosen> best_median_worst(std::span<const double> errors, std::size_t each) {
  const auto rank = [&](std::size_t at) {
    return std::isnan(errors[at]) ? std::numeric_limits<double>::infinity() : errors[at];
  };
  std::vector<std::size_t> order(errors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, rank);
  const std::size_t count = order.size();
  std::vector<Chosen> chosen;
  if (count == 0 || each == 0) return chosen;
  // The worst matter most, then the best, where there are too few samples for all.
  const std::size_t worst = std::min(each, count), best = std::min(each, count - worst);
  const std::size_t middle = std::min(each, count - worst - best);
  for (std::size_t k = 0; k < best; ++k) chosen.push_back({order[k], "best"});
  const std::size_t first = std::clamp((count - middle) / 2, best, count - worst - middle);
  for (std::size_t k = 0; k < middle; ++k) chosen.push_back({order[first + k], "median"});
  for (std::size_t k = 0; k < worst; ++k) chosen.push_back({order[count - worst + k], "worst"});
  return chosen;
}

}  // namespace superstep::workload
