#include <algorithm>
#include <array>
#include <map>

#include "superstep/baseline/ptychography/epie.h"

namespace superstep::baseline {
namespace {

using Cell = std::array<int, 2>;

template <class T>
void shuffle(std::vector<T>& values, RandomStream& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

}  // namespace

// The plane is cut into cells of n x n pixels at a random offset. Cells two apart along an axis hold
// windows that cannot meet: the cells fall into four colours, and a group takes one point from every cell
// of a colour.
std::vector<std::vector<int>> disjoint_groups(const std::vector<data::Position>& positions, int n,
                                              RandomStream& random) {
  const auto side = static_cast<std::uint64_t>(n);
  const int shift_y = static_cast<int>(random.below(side)), shift_x = static_cast<int>(random.below(side));
  std::map<Cell, std::vector<int>> cells;
  std::size_t fullest = 0;
  for (std::size_t point = 0; point < positions.size(); ++point) {
    auto& cell = cells[{(positions[point].y + shift_y) / n, (positions[point].x + shift_x) / n}];
    cell.push_back(static_cast<int>(point));
    fullest = std::max(fullest, cell.size());
  }
  for (auto& [cell, points] : cells) shuffle(points, random);
  std::vector<std::vector<int>> groups;
  for (std::size_t round = 0; round < fullest; ++round)
    for (const int colour : {0, 1, 2, 3}) {
      std::vector<int> group;
      for (const auto& [cell, points] : cells)
        if (cell[0] % 2 * 2 + cell[1] % 2 == colour && round < points.size()) group.push_back(points[round]);
      if (!group.empty()) groups.push_back(std::move(group));
    }
  shuffle(groups, random);
  return groups;
}

}  // namespace superstep::baseline
