#include "superstep/openmp/place.h"

#include "superstep/base/integers.h"

namespace superstep::openmp {
namespace {

std::int64_t fullest(const Cells& cells) {
  std::int64_t most = 0;
  cells.for_each([&](std::uint32_t, const Box& cell) { most = std::max(most, cell.volume()); });
  return most;
}

// Accesses in the order in which they decide: written arrays before those that are only read.
std::vector<const Access*> by_weight(const Region& region) {
  std::vector<const Access*> result;
  for (const bool writes : {true, false})
    for (const Access& access : region.accesses)
      if (access.writes == writes) result.push_back(&access);
  return result;
}

}  // namespace

Cells place_region(const Region& region, std::span<DeviceArray* const> arrays, const bsp::Device& device) {
  Cells cells = choose_cells(region, device);
  const std::int64_t free_choice = fullest(cells);
  for (const Access* access : by_weight(region)) {
    const auto slot = static_cast<std::size_t>(access->array);
    if (!arrays[slot]->placement || arrays[slot]->placement->extents != region.arrays[slot].extents) continue;
    const auto along = cells_of_iterations(region, *access, arrays[slot]->placement->cells);
    if (!along || fullest(*along) > 2 * free_choice) continue;
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
