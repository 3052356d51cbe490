#include "superstep/baseline/imaging/segment.h"

#include <algorithm>
#include <array>

#include "superstep/baseline/ptychography/face_neighbours.h"

namespace superstep::baseline {
namespace {

// Cumulated counts and sums of grey levels: what lies in a range of levels costs two look-ups.
class LevelSums {
 public:
  explicit LevelSums(std::span<const std::uint8_t> values) {
    for (std::uint8_t value : values) count_[value + 1u] += 1, sum_[value + 1u] += value;
    for (std::size_t level = 1; level <= 256; ++level)
      count_[level] += count_[level - 1], sum_[level] += sum_[level - 1];
  }
  // Count times squared mean of the levels [first, last]: the part of a class in the variance between
  // classes.
  double weight(int first, int last) const {
    const auto a = static_cast<std::size_t>(first), b = static_cast<std::size_t>(last + 1);
    const double count = count_[b] - count_[a], sum = sum_[b] - sum_[a];
    return count > 0 ? sum * sum / count : 0;
  }

 private:
  std::array<double, 257> count_{}, sum_{};
};

// The best sum of weights of the levels [first, 255] in `classes` classes; thresholds of the best in `best`.
double best_split(const LevelSums& sums, int first, int classes, std::vector<int>& best) {
  if (classes == 1) {
    best.clear();
    return sums.weight(first, 255);
  }
  double highest = -1;
  std::vector<int> rest;
  for (int level = first; level <= 255 - (classes - 1); ++level) {
    const double value = sums.weight(first, level) + best_split(sums, level + 1, classes - 1, rest);
    if (value <= highest) continue;
    highest = value;
    best.assign(1, level);
    best.insert(best.end(), rest.begin(), rest.end());
  }
  return highest;
}

}  // namespace

std::vector<int> otsu_thresholds(std::span<const std::uint8_t> values, int classes) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (values.empty() || *low == *high)
    return std::vector<int>(static_cast<std::size_t>(classes - 1), values.empty() ? 0 : *low);
  std::vector<int> thresholds;
  best_split(LevelSums(values), 0, classes, thresholds);
  return thresholds;
}

std::vector<std::uint8_t> largest_component(std::span<const std::uint8_t> mask, int width, int height,
                                            int depth) {
  const Extents extents{static_cast<std::size_t>(width), static_cast<std::size_t>(height),
                        static_cast<std::size_t>(depth)};
  std::vector<std::uint8_t> seen(mask.size(), 0), result(mask.size(), 0);
  std::vector<std::size_t> part, largest;
  const auto visit = [&](std::size_t at) {
    if (!mask[at] || seen[at]) return;
    seen[at] = 1;
    part.push_back(at);
  };
  for (std::size_t seed = 0; seed < mask.size(); ++seed) {
    part.clear();
    visit(seed);
    for (std::size_t next = 0; next < part.size(); ++next)
      for_each_face_neighbour(part[next], extents, visit);
    if (part.size() > largest.size()) largest = part;
  }
  for (std::size_t at : largest) result[at] = 1;
  return result;
}

double dice(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  double both = 0, sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += a[i] && b[i];
    sum += (a[i] != 0) + (b[i] != 0);
  }
  return sum > 0 ? 2 * both / sum : 1;
}

}  // namespace superstep::baseline
