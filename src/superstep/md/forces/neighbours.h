// Neighbours of every atom, in a periodic box of any shape or in open space, kept while atoms move little.
//
// Every atom has a list of all its neighbours, so that each pair stands in two lists: forces on an atom are
// then summed in one order by one thread, and come out with the same bits on any number of threads. A
// neighbour is a place: the atoms, brought into the box, and the copies of them that are near it, one row of
// coordinates each. Lists are as long as vectors of eight want them: what is left is filled with a place far
// away.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/file/atoms/configuration.h"

namespace superstep::md {

using data::Cartesian;
using data::Cell;

// Coordinate k of r in units of the box's edges is dot(rows[k], r).
std::array<Cartesian, 3> inverse_of(const Cell& cell);
// Distances between opposite sides of the box, A.
std::array<double, 3> heights_of(const Cell& cell);

class Neighbours {
 public:
  static constexpr std::size_t lanes = 8;  // lists are multiples of it

  // Pairs up to `cutoff` (A) are in the lists at any time; they are searched for up to cutoff + skin, so that
  // a list lasts until an atom has moved by half the skin. `molecules`: a number for each atom, or none;
  // atoms of one molecule are no neighbours of each other (their images in other boxes are). Molecules are
  // whole: their atoms stand together where their positions say.
  Neighbours(double cutoff, double skin, std::vector<std::int32_t> molecules = {});

  // Brings coordinates up to date, and the lists where they are worn out or the box has shrunk too much.
  // Throws Error (invalid_argument) on a position that is not finite, and on a box so thin that a neighbour
  // is found among more than 20 copies along an edge.
  void update(std::span<const Cartesian> positions, const std::optional<Cell>& cell, ThreadPool& pool);

  std::size_t atoms() const { return first_.empty() ? 0 : first_.size() - 1; }
  std::span<const std::int32_t> of(std::size_t atom) const {
    return std::span(list_).subspan(first_[atom], first_[atom + 1] - first_[atom]);
  }
  // Of all places: the atoms first, then copies, and the place far away, which is owned by atom 0.
  const double* x() const { return x_.data(); }
  const double* y() const { return y_.data(); }
  const double* z() const { return z_.data(); }
  std::span<const std::int32_t> owners() const { return owner_; }

  double cutoff() const { return cutoff_; }
  double skin() const { return skin_; }
  std::uint64_t builds() const { return builds_; }
  std::uint64_t pairs_listed() const;  // each counted once

  // What the lists were made of. From it another object makes the same lists in the same order.
  struct Origin {
    std::vector<Cartesian> positions;
    std::optional<Cell> cell;
  };
  const Origin& origin() const { return origin_; }
  void rebuild(Origin origin, ThreadPool& pool);

 private:
  bool is_worn(std::span<const Cartesian> positions, const std::optional<Cell>& cell) const;
  void place_atoms();
  void place_copies();
  void sort_into_bins();
  void search(ThreadPool& pool);
  void search_around(std::size_t atom, std::vector<std::int32_t>& found) const;
  bool is_neighbour(std::size_t atom, std::int32_t place, double limit) const;
  void refresh(std::span<const Cartesian> positions, const std::optional<Cell>& cell);

  using Triple = std::array<std::int32_t, 3>;
  double cutoff_, skin_;
  std::vector<std::int32_t> molecules_;
  Origin origin_;
  std::uint64_t builds_ = 0;

  // Places.
  std::vector<double> x_, y_, z_;
  std::vector<std::int32_t> owner_;
  std::vector<Triple> shift_;  // boxes by which a place is away from its owner's position

  // Bins of a search: places sorted by them.
  std::array<Cartesian, 3> inverse_{};
  std::array<double, 3> low_{}, width_{};  // of the first bin, and of each, in units of the box
  Triple bins_{};
  std::vector<std::size_t> bin_first_;
  std::vector<std::int32_t> bin_places_;

  std::vector<std::size_t> first_;  // of each atom's list, and the end
  std::vector<std::int32_t> list_;
};

}  // namespace superstep::md
