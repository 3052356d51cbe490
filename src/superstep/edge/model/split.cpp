#include "superstep/edge/model/split.h"

#include <algorithm>
#include <limits>

namespace superstep::edge {

std::vector<std::vector<std::int64_t>> cheapest_splits(std::span<const TimedSize> sizes, std::int64_t most) {
  const auto count = static_cast<std::size_t>(most) + 1;
  std::vector<double> seconds(count, std::numeric_limits<double>::infinity());
  std::vector<std::vector<std::int64_t>> splits(count);
  seconds[0] = 0;
  for (std::size_t rows = 1; rows < count; ++rows)
    for (const TimedSize& size : sizes) {
      const std::size_t rest = rows - std::min(rows, static_cast<std::size_t>(size.rows));
      if (seconds[rest] + size.seconds >= seconds[rows]) continue;
      seconds[rows] = seconds[rest] + size.seconds;
      splits[rows] = splits[rest];
      splits[rows].push_back(size.rows);
    }
  for (auto& split : splits) std::ranges::sort(split, std::greater());
  return splits;
}

}  // namespace superstep::edge
