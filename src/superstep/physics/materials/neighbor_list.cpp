#include "superstep/physics/materials/neighbor_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/integers.h"

namespace superstep::data {
namespace {

using Triple = std::array<int, 3>;

// A box around open atoms so wide that no image comes near.
Cell box_around(std::span<const Cartesian> positions, double cutoff) {
  Cartesian low = positions[0], high = positions[0];
  for (const Cartesian& p : positions) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z)};
  }
  const double margin = 2 * cutoff;
  return {{high.x - low.x + margin, 0, 0}, {0, high.y - low.y + margin, 0}, {0, 0, high.z - low.z + margin}};
}

class PairSearch {
 public:
  PairSearch(std::span<const Cartesian> positions, const Cell& cell, double cutoff)
      : positions_(positions), cell_(cell), inverse_(inverse_rows(cell)), cutoff_(cutoff) {
    choose_bins();
    fill_bins();
  }

  std::vector<NeighborPair> run() {
    for (int i = 0; i < static_cast<int>(positions_.size()); ++i) search_around(i);
    return std::move(pairs_);
  }

 private:
  static constexpr int most_bins_an_axis = 256;

  // Bins at least a cutoff wide where the box allows it; `reach_` bins to each side hold all neighbours.
  void choose_bins() {
    for (std::size_t k = 0; k < 3; ++k) {
      const double height = 1 / norm(inverse_[k]);
      bins_[k] = static_cast<int>(std::clamp(height / cutoff_, 1.0, double{most_bins_an_axis}));
      reach_[k] = static_cast<int>(std::ceil(cutoff_ * bins_[k] / height));
    }
  }

  void fill_bins() {
    first_.assign(static_cast<std::size_t>(bins_[0]) * bins_[1] * bins_[2], -1);
    next_.resize(positions_.size());
    wraps_.resize(positions_.size());
    places_.resize(positions_.size());
    for (std::size_t i = positions_.size(); i-- > 0;) place_atom(i);
  }

  void place_atom(std::size_t i) {
    for (std::size_t k = 0; k < 3; ++k) {
      const double fraction = dot(inverse_[k], positions_[i]);
      if (!(std::abs(fraction) < 1e8))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("atom {} is not at a finite position in the box", i));
      wraps_[i][k] = static_cast<int>(std::floor(fraction));
      places_[i][k] = std::clamp(static_cast<int>((fraction - wraps_[i][k]) * bins_[k]), 0, bins_[k] - 1);
    }
    int& head = first_[bin_index(places_[i])];
    next_[i] = head;
    head = static_cast<int>(i);
  }

  std::size_t bin_index(const Triple& bin) const {
    return (static_cast<std::size_t>(bin[0]) * bins_[1] + bin[1]) * bins_[2] + bin[2];
  }

  void search_around(int i) {
    const Triple& place = places_[static_cast<std::size_t>(i)];
    Triple d;
    for (d[0] = -reach_[0]; d[0] <= reach_[0]; ++d[0])
      for (d[1] = -reach_[1]; d[1] <= reach_[1]; ++d[1])
        for (d[2] = -reach_[2]; d[2] <= reach_[2]; ++d[2])
          search_bin(i, {place[0] + d[0], place[1] + d[1], place[2] + d[2]});
  }

  void search_bin(int i, Triple bin) {
    Triple image;
    for (std::size_t k = 0; k < 3; ++k) {
      image[k] = floor_div(bin[k], bins_[k]);
      bin[k] -= image[k] * bins_[k];
    }
    if (image < Triple{0, 0, 0}) return;  // the pair is found from its other atom
    for (int j = first_[bin_index(bin)]; j >= 0; j = next_[static_cast<std::size_t>(j)])
      if (image != Triple{0, 0, 0} || j > i) try_pair(i, j, image);
  }

  void try_pair(int i, int j, const Triple& image) {
    const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j);
    const auto shifts = [&](std::size_t k) { return image[k] - wraps_[b][k] + wraps_[a][k]; };
    const Cartesian shift = cell_.a * shifts(0) + cell_.b * shifts(1) + cell_.c * shifts(2);
    const Cartesian r = positions_[b] + shift - positions_[a];
    if (dot(r, r) < cutoff_ * cutoff_) pairs_.push_back({i, j, shift});
  }

  std::span<const Cartesian> positions_;
  Cell cell_;
  std::array<Cartesian, 3> inverse_;
  double cutoff_;
  Triple bins_{}, reach_{};
  std::vector<int> first_, next_;       // atoms of a bin as a chain
  std::vector<Triple> wraps_, places_;  // boxes that an atom is away from the first, and its bin
  std::vector<NeighborPair> pairs_;
};

}  // namespace

std::array<Cartesian, 3> inverse_rows(const Cell& cell) {
  const double volume = cell.volume();
  if (!(std::abs(volume) > 1e-12) || !std::isfinite(volume))
    throw Error(ErrorCode::invalid_argument, "the box has no volume");
  return {cross(cell.b, cell.c) * (1 / volume), cross(cell.c, cell.a) * (1 / volume),
          cross(cell.a, cell.b) * (1 / volume)};
}

std::vector<NeighborPair> neighbor_pairs(std::span<const Cartesian> positions,
                                         const std::optional<Cell>& cell, double cutoff) {
  if (!(cutoff > 0) || !std::isfinite(cutoff))
    throw Error(ErrorCode::invalid_argument, fmt::format("a cutoff of {} A finds no pairs", cutoff));
  if (positions.empty()) return {};
  return PairSearch(positions, cell ? *cell : box_around(positions, cutoff), cutoff).run();
}

VerletList::VerletList(std::optional<Cell> cell, double cutoff, double skin)
    : cell_(std::move(cell)), cutoff_(cutoff), skin_(skin) {}

bool VerletList::is_stale(std::span<const Cartesian> positions) const {
  if (positions.size() != built_at_.size()) return true;
  const double limit = skin_ * skin_ / 4;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Cartesian moved = positions[i] - built_at_[i];
    if (!(dot(moved, moved) <= limit)) return true;
  }
  return false;
}

std::span<const NeighborPair> VerletList::pairs(std::span<const Cartesian> positions) {
  if (is_stale(positions)) {
    pairs_ = neighbor_pairs(positions, cell_, cutoff_ + skin_);
    built_at_.assign(positions.begin(), positions.end());
  }
  return pairs_;
}

}  // namespace superstep::data
