// Blocks of tiles of an image brought to values at pairs of points. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/winograd/winograd_grid.h"
#include "superstep/target/cpu/kernels/winograd/winograd_loops.h"

namespace superstep::kernels {

// How a block lies in memory: a plane a pair of points, in each a row of channels a column.
struct WinogradPlanes {
  void* data;
  std::int64_t stride;  // elements
  ElementType type = ElementType::f32;
  bool pairs = false;  // two neighbouring columns side by side; an odd number of them is padded with zeros
};

// Some channels of an image, seen by tiles of the grid: squares of `side` positions from which each tile's
// own begin `pad_top` rows and `pad_left` columns further on.
struct WinogradSource {
  const Image& image;
  const void* data;
  std::int64_t first_channel, channels;
  std::int64_t side, pad_top = 0, pad_left = 0;
};

void transform_tiles(WinogradLoop* loop, const WinogradGrid& grid, const WinogradSource& source,
                     PartRange columns, const WinogradPlanes& planes);

}  // namespace superstep::kernels
