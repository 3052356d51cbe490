#include "superstep/target/ipu/place/viewed.h"

#include <numeric>

#include "superstep/op/core/definition.h"

namespace superstep::target::ipu {
namespace {

using Extents = std::vector<std::int64_t>;

std::int64_t product(const Extents& extents, std::size_t begin, std::size_t end) {
  return std::accumulate(extents.begin() + static_cast<std::ptrdiff_t>(begin),
                         extents.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{1},
                         std::multiplies<>());
}

bool is_whole(const Bounds& along) { return along.size() == 2; }
bool is_single(const Bounds& along) { return static_cast<std::int64_t>(along.size()) - 1 == along.back(); }

// Axes [begin, end) as one: none when what lies between its bounds is not one range.
std::optional<Bounds> joined(const std::vector<Bounds>& bounds, std::size_t begin, std::size_t end) {
  std::size_t last = begin;  // one beyond the last axis that is cut
  for (std::size_t axis = begin; axis < end; ++axis)
    if (!is_whole(bounds[axis])) last = axis + 1;
  Bounds all{0, 1};
  for (std::size_t axis = begin; axis < end; ++axis) {
    const std::int64_t extent = bounds[axis].back();
    if (axis >= last) {  // whole: everything before it is that much larger
      for (std::int64_t& bound : all) bound *= extent;
      continue;
    }
    if (axis + 1 < last && !is_single(bounds[axis])) return std::nullopt;
    Bounds finer{0};
    for (std::size_t outer = 0; outer + 1 < all.size(); ++outer)
      for (std::size_t i = 1; i < bounds[axis].size(); ++i)
        finer.push_back(static_cast<std::int64_t>(outer) * extent + bounds[axis][i]);
    all = std::move(finer);
  }
  return all;
}

// One axis as those of `extents` [begin, end): the first axis that all bounds are whole places of is cut,
// those before it into their elements. Appends to `bounds`; false when that gives other ranges.
bool split(const Bounds& all, const Extents& extents, std::size_t begin, std::size_t end,
           std::vector<Bounds>& bounds) {
  if (is_whole(all)) {
    for (std::size_t axis = begin; axis < end; ++axis) bounds.push_back({0, extents[axis]});
    return true;
  }
  for (std::size_t cut = begin; cut < end; ++cut) {
    const std::int64_t inner = product(extents, cut + 1, end), outer = product(extents, begin, cut);
    const auto parts = static_cast<std::int64_t>(all.size()) - 1;
    bool fits = parts % outer == 0;
    for (std::size_t i = 0; fits && i < all.size(); ++i) fits = all[i] % inner == 0;
    if (!fits) continue;
    Bounds along;
    for (std::int64_t i = 0; i <= parts / outer; ++i)
      along.push_back(all[static_cast<std::size_t>(i)] / inner);
    for (std::int64_t i = 0; fits && i <= parts; ++i) {
      const std::int64_t block = i / (parts / outer), place = i % (parts / outer);
      fits = all[static_cast<std::size_t>(i)] ==
             (block * extents[cut] + along[static_cast<std::size_t>(place)]) * inner;
    }
    if (!fits || along.back() != extents[cut]) continue;
    for (std::size_t axis = begin; axis < cut; ++axis)
      bounds.push_back(even_bounds(extents[axis], extents[axis]));
    bounds.push_back(std::move(along));
    for (std::size_t axis = cut + 1; axis < end; ++axis) bounds.push_back({0, extents[axis]});
    return true;
  }
  return false;
}

}  // namespace

std::optional<Spread> reshaped(const Spread& spread, const Shape& from, const Shape& to) {
  if (spread.flattening == Flattening::all) return spread;
  const Extents before = flattened(from, spread.flattening).extents(), after = to.extents();
  if (from.element_count() == 0 || from.element_count() != to.element_count() ||
      before.size() != spread.bounds.size())
    return std::nullopt;
  Spread seen{Flattening::none, {}, spread.tiles};  // boxes stay in their order
  std::size_t i = 0, j = 0;
  while (i < before.size() || j < after.size()) {
    const std::size_t begin = i, first = j;
    std::int64_t of_before = i < before.size() ? before[i++] : 1,
                 of_after = j < after.size() ? after[j++] : 1;
    while (of_before != of_after)
      if (of_before < of_after)
        of_before *= before[i++];
      else
        of_after *= after[j++];
    const std::optional<Bounds> all = joined(spread.bounds, begin, i);
    if (!all || !split(*all, after, first, j, seen.bounds)) return std::nullopt;
  }
  return seen;
}

std::optional<Spread> permuted(const Spread& spread, const Shape& from, const std::vector<int>& order) {
  if (spread.flattening != Flattening::none || spread.bounds.size() != order.size() ||
      from.rank() != static_cast<int>(order.size()))
    return std::nullopt;
  Spread seen{Flattening::none, {}, {}};
  Extents counts, strides(order.size(), 1);
  for (std::size_t axis = order.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * (static_cast<std::int64_t>(spread.bounds[axis].size()) - 1);
  for (const int axis : order) {
    seen.bounds.push_back(spread.bounds[static_cast<std::size_t>(axis)]);
    counts.push_back(static_cast<std::int64_t>(seen.bounds.back().size()) - 1);
  }
  for (std::int64_t box = 0; box < spread.boxes(); ++box) {
    std::int64_t rest = box, place = 0;
    for (std::size_t axis = order.size(); axis-- > 0;) {
      place += rest % counts[axis] * strides[static_cast<std::size_t>(order[axis])];
      rest /= counts[axis];
    }
    seen.tiles.push_back(spread.tiles[static_cast<std::size_t>(place)]);
  }
  return seen;
}

std::optional<Spread> viewed(const Operation& operation, const Spread& spread) {
  const Shape& from = operation.input(0);
  switch (op::traits_of(operation.node->op).view) {
    case op::View::none: return std::nullopt;
    case op::View::same: return spread;
    case op::View::regroups: return reshaped(spread, from, operation.output());
    case op::View::permutes: {
      Extents order(static_cast<std::size_t>(from.rank()));
      std::iota(order.rbegin(), order.rend(), 0);
      order = operation.attributes->integers("perm", order);
      return permuted(spread, from, std::vector<int>(order.begin(), order.end()));
    }
  }
  return std::nullopt;
}

}  // namespace superstep::target::ipu
