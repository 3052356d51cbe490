#include "superstep/target/ipu/cut/operand_grid.h"

#include <algorithm>

#include "superstep/target/ipu/cut/channel_group.h"

namespace superstep::target::ipu {
namespace {

// Of the tiles that share a box, those that take a piece of it.
std::vector<std::uint32_t> thinned(std::vector<std::uint32_t> tiles, std::int64_t count) {
  std::vector<std::uint32_t> kept;
  const auto all = static_cast<std::int64_t>(tiles.size());
  for (std::int64_t k = 0; k < count; ++k) kept.push_back(tiles[static_cast<std::size_t>(k * all / count)]);
  return kept;
}

std::int64_t elements_of(const std::vector<Bounds>& bounds) {
  std::int64_t count = 1;
  for (const Bounds& along : bounds) {
    std::int64_t least = along[1];
    for (std::size_t i = 0; i + 1 < along.size(); ++i) least = std::min(least, along[i + 1] - along[i]);
    count *= least;
  }
  return count;
}

}  // namespace

OperandGrid::OperandGrid(const Partition& partition, const Shape& shape, bool input, std::size_t i)
    : axis_of_(partition.bounds.size(), -1) {
  for (int axis = 0; axis < shape.rank(); ++axis) bounds_.push_back({0, shape[axis]});
  for (std::size_t c = 0; c < partition.bounds.size(); ++c) {
    const Cut& cut = partition.cuts.axes[c];
    const CutOperand& operand = input ? cut.inputs[i] : cut.outputs[i];
    if (operand.axis < 0 || partition.bounds[c].size() == 2) continue;
    Bounds& along = bounds_[static_cast<std::size_t>(operand.axis)];
    valid_ = valid_ && along.size() == 2 && !operand.reads;
    along = partition.bounds[c];
    for (std::int64_t& bound : along) bound *= operand.chunk;
    axis_of_[c] = operand.axis;
  }
}

std::size_t OperandGrid::boxes() const {
  std::size_t count = 1;
  for (const Bounds& along : bounds_) count *= along.size() - 1;
  return count;
}

std::size_t OperandGrid::box_of(const Part& part) const {
  std::vector<std::size_t> index(bounds_.size(), 0);
  for (std::size_t c = 0; c < axis_of_.size(); ++c)
    if (axis_of_[c] >= 0)
      index[static_cast<std::size_t>(axis_of_[c])] = static_cast<std::size_t>(part.index[c]);
  std::size_t box = 0;
  for (std::size_t axis = 0; axis < bounds_.size(); ++axis)
    box = box * (bounds_[axis].size() - 1) + index[axis];
  return box;
}

Spread shared_grid(Flattening flattening, const std::vector<Bounds>& bounds,
                   std::vector<std::vector<std::uint32_t>> sharers, std::int64_t grain,
                   std::int64_t least_here) {
  auto least = static_cast<std::int64_t>(sharers[0].size());
  for (std::vector<std::uint32_t>& tiles : sharers) {
    std::sort(tiles.begin(), tiles.end());
    tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
    least = std::min(least, static_cast<std::int64_t>(tiles.size()));
  }
  const std::int64_t count =
      std::clamp<std::int64_t>(elements_of(bounds) / least_here, 1, std::max<std::int64_t>(least, 1));
  for (std::vector<std::uint32_t>& tiles : sharers) tiles = thinned(std::move(tiles), count);
  return subdivided(flattening, bounds, sharers, grain);
}

bool in_channel_groups(const graph::ValueType& type, const Partition& partition, std::size_t output) {
  if (!has_channel_groups(type)) return false;
  for (std::size_t c = 0; c < partition.bounds.size(); ++c) {
    const CutOperand& operand = partition.cuts.axes[c].outputs[output];
    if (operand.axis != 1) continue;
    for (const std::int64_t bound : partition.bounds[c])
      if (bound * operand.chunk % channel_group != 0) return false;
  }
  return true;
}

}  // namespace superstep::target::ipu
