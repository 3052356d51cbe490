// Pairs of atoms closer than a cutoff, in a periodic box of any shape and size or in open space.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "superstep/file/atoms/configuration.h"

namespace superstep::data {

// Rows of the inverse of a box: fractional coordinate k of r is dot(inverse[k], r). Throws Error
// (invalid_argument) on a box without volume.
std::array<Cartesian, 3> inverse_rows(const Cell& cell);

// The pair (i, j) at distance |position[j] + shift - position[i]|.
struct NeighborPair {
  int i, j;
  Cartesian shift;
};

// Every pair closer than `cutoff` once (an atom and its own image too), found over linked cells in time
// linear in the number of atoms. The box may be smaller than the cutoff: images count as often as they are
// near. The order depends on the input alone. Throws Error (invalid_argument) on a box without volume, a
// cutoff that is not positive, or a position that is not finite.
std::vector<NeighborPair> neighbor_pairs(std::span<const Cartesian> positions,
                                         const std::optional<Cell>& cell, double cutoff);

// Keeps pairs up to cutoff + skin and renews them when an atom has moved by half the skin, so that most steps
// of a simulation need no search. The box is fixed. Pairs beyond the cutoff may be among them.
class VerletList {
 public:
  VerletList(std::optional<Cell> cell, double cutoff, double skin);
  std::span<const NeighborPair> pairs(std::span<const Cartesian> positions);
  double cutoff() const { return cutoff_; }
  const std::optional<Cell>& cell() const { return cell_; }

 private:
  bool is_stale(std::span<const Cartesian> positions) const;

  std::optional<Cell> cell_;
  double cutoff_, skin_;
  std::vector<Cartesian> built_at_;
  std::vector<NeighborPair> pairs_;
};

}  // namespace superstep::data
