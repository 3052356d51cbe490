#include "superstep/md/forces/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"

namespace superstep::md {
namespace {

constexpr double far_away = 1e8;    // A: beyond any cutoff
constexpr int most_copies = 20;     // along an edge, to each side
constexpr int most_bins = 100;      // along an edge
constexpr std::int64_t block = 64;  // atoms searched for at a time

// A box around atoms in open space.
Cell box_around(std::span<const Cartesian> positions, double margin) {
  Cartesian low = positions[0], high = positions[0];
  for (const Cartesian& p : positions) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z)};
  }
  const Cartesian edge = high - low + Cartesian{margin, margin, margin};
  return {{edge.x, 0, 0}, {0, edge.y, 0}, {0, 0, edge.z}};
}

Cartesian moved_by(const Cell& cell, const std::array<std::int32_t, 3>& shift) {
  return cell.a * shift[0] + cell.b * shift[1] + cell.c * shift[2];
}

}  // namespace

std::array<Cartesian, 3> inverse_of(const Cell& cell) {
  const double volume = cell.volume();
  if (!(std::abs(volume) > 1e-12) || !std::isfinite(volume))
    throw Error(ErrorCode::invalid_argument, "the box has no volume");
  return {cross(cell.b, cell.c) * (1 / volume), cross(cell.c, cell.a) * (1 / volume),
          cross(cell.a, cell.b) * (1 / volume)};
}

std::array<double, 3> heights_of(const Cell& cell) {
  const auto rows = inverse_of(cell);
  return {1 / norm(rows[0]), 1 / norm(rows[1]), 1 / norm(rows[2])};
}

Neighbours::Neighbours(double cutoff, double skin, std::vector<std::int32_t> molecules)
    : cutoff_(cutoff), skin_(skin), molecules_(std::move(molecules)) {
  if (!(cutoff > 0) || !std::isfinite(cutoff) || !(skin > 0) || !std::isfinite(skin))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a cutoff of {} A and a skin of {} A find no neighbors", cutoff, skin));
}

std::uint64_t Neighbours::pairs_listed() const {
  std::uint64_t both = 0;
  for (std::size_t i = 0; i < atoms(); ++i)
    both += static_cast<std::uint64_t>(
        std::ranges::count_if(of(i), [&](std::int32_t place) { return place + 1 < std::ssize(owner_); }));
  return both / 2;
}

// A pair that was left out was further apart than cutoff + skin, and is now, the box being `scale` times as
// large and both atoms moved by `most` in it, at least scale * (cutoff + skin) - 2 most apart.
bool Neighbours::is_worn(std::span<const Cartesian> positions, const std::optional<Cell>& cell) const {
  if (positions.size() != origin_.positions.size() || cell.has_value() != origin_.cell.has_value())
    return true;
  const double scale = cell ? std::cbrt(cell->volume() / origin_.cell->volume()) : 1;
  const double spare = (scale * (cutoff_ + skin_) - cutoff_) / 2;
  if (!(spare > 0)) return true;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Cartesian moved = positions[i] - scale * origin_.positions[i];
    if (!(dot(moved, moved) <= spare * spare)) return true;
  }
  return false;
}

void Neighbours::update(std::span<const Cartesian> positions, const std::optional<Cell>& cell,
                        ThreadPool& pool) {
  if (is_worn(positions, cell))
    rebuild({{positions.begin(), positions.end()}, cell}, pool);
  else
    refresh(positions, cell);
}

void Neighbours::rebuild(Origin origin, ThreadPool& pool) {
  origin_ = std::move(origin);
  ++builds_;
  place_atoms();
  if (origin_.cell) place_copies();
  owner_.push_back(0);
  shift_.push_back({});
  refresh(origin_.positions, origin_.cell);
  sort_into_bins();
  search(pool);
}

// Atoms in open space stand where they are; in a box they are brought into it.
void Neighbours::place_atoms() {
  const std::size_t count = origin_.positions.size();
  owner_.resize(count);
  shift_.assign(count, {});
  const double reach = cutoff_ + skin_;
  const Cell box = origin_.cell ? *origin_.cell
                   : count == 0 ? Cell{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
                                : box_around(origin_.positions, reach);
  inverse_ = inverse_of(box);
  for (std::size_t i = 0; i < count; ++i) {
    owner_[i] = static_cast<std::int32_t>(i);
    for (std::size_t k = 0; k < 3; ++k) {
      const double fraction = dot(inverse_[k], origin_.positions[i]);
      if (!(std::abs(fraction) < far_away))
        throw Error(ErrorCode::invalid_argument, fmt::format("atom {} is not at a finite position", i + 1));
      if (origin_.cell) shift_[i][k] = -static_cast<std::int32_t>(std::floor(fraction));
    }
  }
}

// Copies of atoms within reach of the box.
void Neighbours::place_copies() {
  const double reach = cutoff_ + skin_;
  std::array<double, 3> margin{};
  Triple most{};
  for (std::size_t k = 0; k < 3; ++k) {
    margin[k] = reach * norm(inverse_[k]);
    if (margin[k] > most_copies)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the box is {:.3g} A thick, less than a {}th of the {:.3g} A over which atoms "
                              "are neighbors",
                              1 / norm(inverse_[k]), most_copies, reach),
                  {}, "repeat the cell, or give a smaller cutoff");
    most[k] = static_cast<std::int32_t>(std::ceil(margin[k]));
  }
  const std::size_t count = origin_.positions.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::array<double, 3> inside{};
    for (std::size_t k = 0; k < 3; ++k) inside[k] = dot(inverse_[k], origin_.positions[i]) + shift_[i][k];
    const auto is_near = [&](std::size_t k, std::int32_t boxes) {
      return inside[k] + boxes >= -margin[k] && inside[k] + boxes <= 1 + margin[k];
    };
    for (std::int32_t a = -most[0]; a <= most[0]; ++a)
      for (std::int32_t b = -most[1]; b <= most[1]; ++b)
        for (std::int32_t c = -most[2]; c <= most[2]; ++c) {
          if ((a == 0 && b == 0 && c == 0) || !is_near(0, a) || !is_near(1, b) || !is_near(2, c)) continue;
          owner_.push_back(static_cast<std::int32_t>(i));
          shift_.push_back({shift_[i][0] + a, shift_[i][1] + b, shift_[i][2] + c});
        }
  }
}

void Neighbours::refresh(std::span<const Cartesian> positions, const std::optional<Cell>& cell) {
  const std::size_t count = owner_.size();
  x_.resize(count), y_.resize(count), z_.resize(count);
  for (std::size_t place = 0; place + 1 < count; ++place) {
    Cartesian at = positions[static_cast<std::size_t>(owner_[place])];
    if (cell) at += moved_by(*cell, shift_[place]);
    x_[place] = at.x, y_[place] = at.y, z_[place] = at.z;
  }
  x_.back() = y_.back() = z_.back() = far_away;
}

// Bins are half a reach thick where that is not too many: 125 of them hold all neighbours.
void Neighbours::sort_into_bins() {
  const std::size_t places = owner_.size() - 1;
  std::array<double, 3> high{};
  low_.fill(INFINITY), high.fill(-INFINITY);
  const auto fraction = [&](std::size_t place, std::size_t k) {
    return dot(inverse_[k], {x_[place], y_[place], z_[place]});
  };
  for (std::size_t place = 0; place < places; ++place)
    for (std::size_t k = 0; k < 3; ++k)
      low_[k] = std::min(low_[k], fraction(place, k)), high[k] = std::max(high[k], fraction(place, k));
  for (std::size_t k = 0; k < 3; ++k) {
    const double half = (cutoff_ + skin_) / 2 * norm(inverse_[k]), extent = std::max(0.0, high[k] - low_[k]);
    bins_[k] = places == 0 ? 1 : static_cast<std::int32_t>(std::clamp(extent / half, 1.0, double{most_bins}));
    width_[k] = std::max(extent / bins_[k], half);
  }
  bin_first_.assign(static_cast<std::size_t>(bins_[0]) * bins_[1] * bins_[2] + 1, 0);
  std::vector<std::size_t> bin_of(places);
  for (std::size_t place = 0; place < places; ++place) {
    std::size_t bin = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bin = bin * static_cast<std::size_t>(bins_[k]) +
            static_cast<std::size_t>(std::clamp(
                static_cast<std::int32_t>((fraction(place, k) - low_[k]) / width_[k]), 0, bins_[k] - 1));
    bin_of[place] = bin;
    ++bin_first_[bin + 1];
  }
  for (std::size_t bin = 1; bin < bin_first_.size(); ++bin) bin_first_[bin] += bin_first_[bin - 1];
  std::vector<std::size_t> next(bin_first_.begin(), bin_first_.end() - 1);
  bin_places_.resize(places);
  for (std::size_t place = 0; place < places; ++place)
    bin_places_[next[bin_of[place]]++] = static_cast<std::int32_t>(place);
}

bool Neighbours::is_neighbour(std::size_t atom, std::int32_t place, double limit) const {
  const auto other = static_cast<std::size_t>(place);
  if (other == atom) return false;
  const double dx = x_[other] - x_[atom], dy = y_[other] - y_[atom], dz = z_[other] - z_[atom];
  if (!(dx * dx + dy * dy + dz * dz < limit)) return false;
  if (molecules_.empty()) return true;
  return molecules_[static_cast<std::size_t>(owner_[other])] != molecules_[atom] ||
         shift_[other] != shift_[atom];
}

void Neighbours::search_around(std::size_t atom, std::vector<std::int32_t>& found) const {
  const double reach = cutoff_ + skin_;
  const Cartesian at{x_[atom], y_[atom], z_[atom]};
  Triple from{}, to{};
  for (std::size_t k = 0; k < 3; ++k) {
    const double place = dot(inverse_[k], at) - low_[k], half = reach * norm(inverse_[k]);
    const auto bin = [&](double fraction) {
      return static_cast<std::int32_t>(std::clamp(std::floor(fraction / width_[k]), 0.0, bins_[k] - 1.0));
    };
    from[k] = bin(place - half), to[k] = bin(place + half);
  }
  for (std::int32_t a = from[0]; a <= to[0]; ++a)
    for (std::int32_t b = from[1]; b <= to[1]; ++b) {
      // Bins along the last edge follow each other.
      const std::size_t row = (static_cast<std::size_t>(a) * bins_[1] + b) * bins_[2];
      for (std::size_t at_place = bin_first_[row + from[2]]; at_place < bin_first_[row + to[2] + 1];
           ++at_place)
        if (is_neighbour(atom, bin_places_[at_place], reach * reach)) found.push_back(bin_places_[at_place]);
    }
  const auto far = static_cast<std::int32_t>(owner_.size() - 1);
  while (found.size() % lanes != 0) found.push_back(far);
}

void Neighbours::search(ThreadPool& pool) {
  const auto count = static_cast<std::int64_t>(origin_.positions.size());
  const std::int64_t blocks = (count + block - 1) / block;
  std::vector<std::vector<std::int32_t>> lists(static_cast<std::size_t>(blocks));
  first_.assign(static_cast<std::size_t>(count) + 1, 0);
  pool.parallel_for(blocks, [&](std::int64_t item, int) {
    std::vector<std::int32_t>& own = lists[static_cast<std::size_t>(item)];
    for (std::int64_t i = item * block; i < std::min(count, (item + 1) * block); ++i) {
      const std::size_t before = own.size();
      search_around(static_cast<std::size_t>(i), own);
      first_[static_cast<std::size_t>(i) + 1] = own.size() - before;
    }
  });
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  list_.resize(first_.back());
  std::size_t at = 0;
  for (const auto& own : lists)
    at = static_cast<std::size_t>(std::ranges::copy(own, list_.begin() + at).out - list_.begin());
}

}  // namespace superstep::md
