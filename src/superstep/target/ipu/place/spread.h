// Where a value lies: a grid of boxes, each on a tile.
//
// A program moves least when an operator works on its operands where they are. So every value remembers how
// it was made in parts, and an operator that can be cut the same way is.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/target/ipu/cut/flatten.h"
#include "superstep/target/ipu/cut/part.h"

namespace superstep::target::ipu {

struct Spread {
  Flattening flattening = Flattening::none;  // the axes that the grid is over
  std::vector<Bounds> bounds;                // along every axis
  std::vector<std::uint32_t> tiles;          // of the boxes, row-major

  std::int64_t boxes() const { return static_cast<std::int64_t>(tiles.size()); }
};

// How often to split every extent, at most `most` boxes in all, so that the largest box is as small as can
// be; of those that are the same, outer axes are split first, so that boxes have few rows apart.
std::vector<std::int64_t> balanced_splits(const std::vector<std::int64_t>& extents, std::int64_t most);

// A grid whose boxes are each shared by several tiles, every box split among its tiles as far as it goes:
// `sharers[box]` are the tiles of a box, all lists of one length. Axis 1 is split at multiples of `grain`
// alone.
Spread subdivided(Flattening flattening, const std::vector<Bounds>& bounds,
                  const std::vector<std::vector<std::uint32_t>>& sharers, std::int64_t grain = 1);

// The parts of `operation` that lie on the grid of its operand `input` (or of output 0 before it is made):
// none when a cut does not follow the grid, or the grid is over axes that the operator does not cut.
std::optional<Partition> follow(const Cuts& cuts, const Spread& spread, std::size_t input);

// Where output `i` lies when it was made in these parts; none when parts overlap there.
std::optional<Spread> spread_of_output(const Partition& partition, Flattening flattening, const Shape& shape,
                                       std::size_t i, const std::vector<std::uint32_t>& tiles);

}  // namespace superstep::target::ipu
