#include "superstep/openmp/place.h"

#include <algorithm>
#include <numeric>

#include "superstep/base/integers.h"

namespace superstep::openmp {
namespace {

double weight_of(const Box& cell, std::span<const double> weights, std::int64_t first) {
  if (weights.empty() || cell.empty()) return static_cast<double>(cell.volume());
  const auto part = weights.subspan(static_cast<std::size_t>(cell.begin[0] - first),
                                    static_cast<std::size_t>(cell.extent(0)));
  return std::accumulate(part.begin(), part.end(), 0.0);
}

double fullest(const Cells& cells, std::span<const double> weights, std::int64_t first) {
  double most = 0;
  cells.for_each(
      [&](std::uint32_t, const Box& cell) { most = std::max(most, weight_of(cell, weights, first)); });
  return most;
}

// As many cells as before, each with its share of the weight.
void balance(Cells& cells, std::span<const double> weights) {
  std::vector<std::int64_t>& cuts = cells.cuts[0];
  const std::int64_t first = cuts.front(), end = cuts.back();
  const auto count = static_cast<double>(cuts.size() - 1);
  const double share = std::accumulate(weights.begin(), weights.end(), 0.0) / count;
  double sum = 0;
  std::int64_t at = first;
  for (std::size_t cell = 1; cell + 1 < cuts.size(); ++cell) {
    const double wanted = share * static_cast<double>(cell);
    // Up to the iteration in whose first half the share ends.
    while (at < end && sum + weights[static_cast<std::size_t>(at - first)] / 2 < wanted)
      sum += weights[static_cast<std::size_t>(at++ - first)];
    // None is left without an iteration: choose_cells makes no more cells than there are.
    const auto before = static_cast<std::int64_t>(cell),
               after = static_cast<std::int64_t>(cuts.size() - 1) - before;
    cuts[cell] = std::clamp(at, first + before, end - after);
  }
}

// Accesses in the order in which they decide: written arrays before those that are only read.
std::vector<const Access*> by_weight(const Region& region) {
  std::vector<const Access*> result;
  for (const bool writes : {true, false})
    for (const Access& access : region.accesses)
      if (access.writes == writes && !access.gathered) result.push_back(&access);
  return result;
}

}  // namespace

Cells place_region(const Region& region, std::span<DeviceArray* const> arrays, const bsp::Device& device,
                   std::span<const double> weights) {
  Cells cells = choose_cells(region, device);
  const std::int64_t first = region.loops.empty() ? 0 : region.loops[0].begin;
  if (!weights.empty()) balance(cells, weights);
  const double free_choice = fullest(cells, weights, first);
  for (const Access* access : by_weight(region)) {
    const auto slot = static_cast<std::size_t>(access->array);
    if (!arrays[slot]->placement || arrays[slot]->placement->extents != region.arrays[slot].extents) continue;
    const auto along = cells_of_iterations(region, *access, arrays[slot]->placement->cells);
    if (!along || fullest(*along, weights, first) > 2 * free_choice) continue;
    cells = *along;
    break;
  }
  for (const Access* access : by_weight(region)) {
    const auto slot = static_cast<std::size_t>(access->array);
    if (!arrays[slot]->placement)
      arrays[slot]->placement = {region.arrays[slot].extents, cells_of_array(region, *access, cells)};
  }
  for (const Reduction& reduction : region.reductions) {
    const auto slot = static_cast<std::size_t>(reduction.array);
    const auto& extents = region.arrays[slot].extents;
    if (!arrays[slot]->placement)
      arrays[slot]->placement = {extents, one_cell(whole(extents), cells.first_tile)};
  }
  return cells;
}

void place_gathered(const Plan& plan, std::span<DeviceArray* const> arrays) {
  if (plan.region.distributed != 1 || plan.parts.size() != static_cast<std::size_t>(plan.iterations.count()))
    return;
  for (std::size_t slot = 0; slot < arrays.size(); ++slot) {
    if (arrays[slot]->placement || !plan.region.gathers(slot)) continue;
    std::vector<std::int64_t> cuts = cuts_of_parts(plan.region, slot, plan.gathers);
    if (cuts.empty()) continue;
    Cells cells = plan.iterations;
    cells.cuts[0] = std::move(cuts);
    arrays[slot]->placement = {{arrays[slot]->count}, std::move(cells)};
  }
}

void place_evenly(DeviceArray& array, const bsp::Device& device) {
  // Not less than this many elements a tile: a chosen number, some hundred cycles of exchange.
  constexpr std::int64_t least = 256;
  const std::int64_t tiles = std::clamp<std::int64_t>(array.count / least, 1, device.num_tiles());
  Cells cells = one_cell(whole({array.count}), 0);
  cells.cuts[0].clear();
  cells.tile_steps[0] = 1;
  for (std::int64_t i = 0; i <= tiles; ++i) cells.cuts[0].push_back(array.count * i / tiles);
  array.placement = {{array.count}, std::move(cells)};
}

}  // namespace superstep::openmp
