// A box cut along its axes into cells, each on one tile: how iterations and arrays are dealt.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "superstep/bsp/compile/device.h"
#include "superstep/openmp/region.h"

namespace superstep::openmp {

// Along axis k the cells lie between cuts[k][c] and cuts[k][c + 1]; the tile of a cell is the sum of
// tile_steps[k] * c and first_tile. No two cells have one tile.
struct Cells {
  std::vector<std::vector<std::int64_t>> cuts;
  std::int64_t first_tile = 0;
  std::vector<std::int64_t> tile_steps;

  std::int64_t along(std::size_t axis) const { return static_cast<std::int64_t>(cuts[axis].size()) - 1; }
  std::int64_t count() const;
  // In row-major order of cells.
  void for_each(FunctionRef<void(std::uint32_t tile, const Box& cell)> f) const;
  // The cells that a box touches.
  void for_each_touching(const Box& box, FunctionRef<void(std::uint32_t tile, const Box& common)> f) const;
  friend bool operator==(const Cells&, const Cells&) = default;
};

Cells one_cell(const Box& box, std::int64_t tile);

// Cycles of one worker for one iteration of the distributed loops.
double cycles_of(const Work& work, ElementType type);
double flops_of(const Work& work);
ElementType widest_float(const Region& region);  // f32 when there is none

// The iterations of a region over at most so many tiles, so that compute and exchange of the fullest tile are
// least.
Cells choose_cells(const Region& region, const bsp::Device& device);

// Where an array lies when an access to it is to find its elements on the tile of its iteration; subscripts
// with one distributed loop are cut as that loop is, the first and last cells reach to the array's ends.
Cells cells_of_array(const Region& region, const Access& access, const Cells& iterations);

// Iterations dealt so that the elements of an access lie where the array is; nothing when the access does not
// say where every iteration belongs.
std::optional<Cells> cells_of_iterations(const Region& region, const Access& access, const Cells& array);

}  // namespace superstep::openmp
