#include "superstep/target/ipu/place/spread.h"

#include <algorithm>
#include <array>
#include <limits>

#include "superstep/base/integers.h"
#include "superstep/machine/ipu/product_search.h"

namespace superstep::target::ipu {
namespace {

// Finds splits by descending through the axes; the cost of a box is its elements, and what its rows cost that
// do not lie together.
class Balance {
 public:
  Balance(const std::vector<std::int64_t>& extents, std::int64_t row_cost)
      : extents_(extents), row_cost_(row_cost), now_(extents.size(), 1) {}

  std::vector<std::int64_t> run(std::int64_t most) {
    best_ = now_;
    descend(0, most, 1, 1);
    return best_;
  }

 private:
  // Rows of the largest box: inside the innermost axis that is split, elements lie together.
  std::int64_t rows() const {
    std::size_t inner = extents_.size();
    while (inner > 0 && now_[inner - 1] == 1) --inner;
    std::int64_t count = 1;
    for (std::size_t axis = 0; axis + 1 < inner; ++axis) count *= ceil_div(extents_[axis], now_[axis]);
    return count;
  }

  // Of the same cost, the fewest rows, then the fewest boxes.
  void descend(std::size_t axis, std::int64_t most, std::int64_t box, std::int64_t boxes) {
    if (axis == extents_.size()) {
      const std::int64_t row_count = rows();
      const std::array<std::int64_t, 3> cost{box + row_cost_ * row_count, row_count, boxes};
      if (cost >= least_) return;
      least_ = cost;
      best_ = now_;
      return;
    }
    const std::int64_t extent = extents_[axis];
    if (axis + 1 == extents_.size()) {
      const std::int64_t part = ceil_div(extent, std::clamp<std::int64_t>(most, 1, extent));
      now_[axis] = ceil_div(extent, part);
      return descend(axis + 1, 1, box * part, boxes * now_[axis]);
    }
    for (const std::int64_t split : machine::ipu::distinct_splits(extent, most)) {
      now_[axis] = split;
      descend(axis + 1, most / split, box * ceil_div(extent, split), boxes * split);
    }
  }

  const std::vector<std::int64_t>& extents_;
  std::int64_t row_cost_;
  std::vector<std::int64_t> now_, best_;
  std::array<std::int64_t, 3> least_{std::numeric_limits<std::int64_t>::max()};
};

// Calls f(index) for every box of a grid, row-major.
template <class F>
void for_each_box(const std::vector<std::int64_t>& counts, F&& f) {
  std::vector<std::int64_t> index(counts.size(), 0);
  for (;;) {
    f(index);
    std::size_t axis = counts.size();
    while (axis > 0 && ++index[axis - 1] == counts[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

std::vector<std::int64_t> counts_of(const std::vector<Bounds>& bounds) {
  std::vector<std::int64_t> counts;
  for (const Bounds& along : bounds) counts.push_back(static_cast<std::int64_t>(along.size()) - 1);
  return counts;
}

std::int64_t narrowest(const Bounds& along) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i + 1 < along.size(); ++i) least = std::min(least, along[i + 1] - along[i]);
  return least;
}

}  // namespace

std::vector<std::int64_t> balanced_splits(const std::vector<std::int64_t>& extents, std::int64_t most) {
  if (extents.empty()) return {};
  return Balance(extents, 0).run(std::max<std::int64_t>(most, 1));
}

Spread subdivided(Flattening flattening, const std::vector<Bounds>& bounds,
                  const std::vector<std::vector<std::uint32_t>>& sharers, std::int64_t grain) {
  const auto grain_of = [&](std::size_t axis) { return axis == 1 ? grain : std::int64_t{1}; };
  std::vector<std::int64_t> least;
  for (const Bounds& along : bounds) least.push_back(narrowest(along) / grain_of(least.size()));
  constexpr std::int64_t row_cost = 4;  // elements whose exchange takes as long as a fragment
  const std::vector<std::int64_t> splits =
      bounds.empty() ? std::vector<std::int64_t>{}
                     : Balance(least, row_cost).run(static_cast<std::int64_t>(sharers[0].size()));
  Spread spread{flattening, {}, {}};
  for (std::size_t a = 0; a < bounds.size(); ++a) {
    Bounds finer{0};
    const std::int64_t whole = grain_of(a);
    for (std::size_t i = 0; i + 1 < bounds[a].size(); ++i)
      for (std::int64_t k = 1; k <= splits[a]; ++k)
        finer.push_back(bounds[a][i] + k * ((bounds[a][i + 1] - bounds[a][i]) / whole) / splits[a] * whole);
    spread.bounds.push_back(std::move(finer));
  }
  const std::vector<std::int64_t> coarse = counts_of(bounds);
  for_each_box(counts_of(spread.bounds), [&](const std::vector<std::int64_t>& index) {
    std::int64_t box = 0, sharer = 0;
    for (std::size_t a = 0; a < index.size(); ++a) {
      box = box * coarse[a] + index[a] / splits[a];
      sharer = sharer * splits[a] + index[a] % splits[a];
    }
    spread.tiles.push_back(sharers[static_cast<std::size_t>(box)][static_cast<std::size_t>(sharer)]);
  });
  return spread;
}

std::optional<Partition> follow(const Cuts& cuts, const Spread& spread, std::size_t input) {
  Partition partition{cuts, {}, {}, 0, 1};
  std::vector<int> cut_of(spread.bounds.size(), -1);
  for (std::size_t c = 0; c < cuts.axes.size(); ++c) {
    const CutOperand& operand = cuts.axes[c].inputs[input];
    partition.bounds.push_back({0, cuts.axes[c].units});
    if (operand.axis < 0) continue;
    if (static_cast<std::size_t>(operand.axis) >= spread.bounds.size()) return std::nullopt;
    const Bounds& along = spread.bounds[static_cast<std::size_t>(operand.axis)];
    if (along.size() == 2) continue;
    if (operand.chunk != 1 || operand.reads || cuts.axes[c].window >= 0 || along.back() != cuts.axes[c].units)
      return std::nullopt;
    cut_of[static_cast<std::size_t>(operand.axis)] = static_cast<int>(c);
    partition.bounds.back() = along;
  }
  for (std::size_t axis = 0; axis < spread.bounds.size(); ++axis)
    if (spread.bounds[axis].size() > 2 && cut_of[axis] < 0) return std::nullopt;
  const std::int64_t count = partition.count();
  for (std::int64_t number = 0; number < count; ++number) {
    const Part part = part_of(partition, number);
    std::int64_t box = 0;
    for (std::size_t axis = 0; axis < spread.bounds.size(); ++axis) {
      box *= static_cast<std::int64_t>(spread.bounds[axis].size()) - 1;
      if (cut_of[axis] >= 0) box += part.index[static_cast<std::size_t>(cut_of[axis])];
    }
    partition.tiles.push_back(spread.tiles[static_cast<std::size_t>(box)]);
  }
  return partition;
}

std::optional<Spread> spread_of_output(const Partition& partition, Flattening flattening, const Shape& shape,
                                       std::size_t i, const std::vector<std::uint32_t>& tiles) {
  Spread spread{flattening, {}, {}};
  for (int axis = 0; axis < shape.rank(); ++axis) spread.bounds.push_back({0, shape[axis]});
  std::vector<std::int64_t> axis_of(partition.bounds.size(), -1);
  for (std::size_t c = 0; c < partition.bounds.size(); ++c) {
    if (partition.bounds[c].size() == 2) continue;
    const CutOperand& operand = partition.cuts.axes[c].outputs[i];
    if (operand.axis < 0) return std::nullopt;
    Bounds along = partition.bounds[c];
    for (std::int64_t& bound : along) bound *= operand.chunk;
    axis_of[c] = operand.axis;
    spread.bounds[static_cast<std::size_t>(operand.axis)] = std::move(along);
  }
  const std::vector<std::int64_t> counts = counts_of(spread.bounds);
  std::int64_t boxes = 1;
  for (const std::int64_t count : counts) boxes *= count;
  if (boxes != partition.count()) return std::nullopt;  // two cuts along one axis
  spread.tiles.resize(static_cast<std::size_t>(boxes));
  for (std::int64_t number = 0; number < boxes; ++number) {
    const Part part = part_of(partition, number);
    std::vector<std::int64_t> index(counts.size(), 0);
    for (std::size_t c = 0; c < axis_of.size(); ++c)
      if (axis_of[c] >= 0) index[static_cast<std::size_t>(axis_of[c])] = part.index[c];
    std::int64_t box = 0;
    for (std::size_t axis = 0; axis < counts.size(); ++axis) box = box * counts[axis] + index[axis];
    spread.tiles[static_cast<std::size_t>(box)] = tiles[static_cast<std::size_t>(number)];
  }
  return spread;
}

}  // namespace superstep::target::ipu
