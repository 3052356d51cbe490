// How the positions of an image are cut into tiles and those into blocks. Internal to the kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "superstep/target/cpu/kernels/image.h"
#include "superstep/target/cpu/kernels/kernel.h"

namespace superstep::kernels {

// Tiles of `tile` x `tile` positions of an image, the last ones partly outside. A column of the products is
// one sample of one tile; columns are counted through samples, then tiles of a row, then rows.
struct WinogradGrid {
  std::int64_t tile, rows, columns, batch;

  WinogradGrid(std::int64_t tile_size, const Image& image)
      : tile(tile_size),
        rows((image.height + tile - 1) / tile),
        columns((image.width + tile - 1) / tile),
        batch(image.batch) {}

  std::int64_t planes() const { return (tile + 2) * (tile + 2); }
  std::int64_t count() const { return rows * columns * batch; }

  // Samples [begin, end) of the tile (row, column).
  struct Piece {
    std::int64_t row, column, begin, end;
    std::int64_t first;  // product column of its first sample
  };
  // Calls body(piece) for each tile that has columns in the range.
  template <class Body>
  void for_each_piece(PartRange range, const Body& body) const {
    for (std::int64_t at = range.begin; at < range.end;) {
      const std::int64_t number = at / batch, begin = at % batch;
      const std::int64_t end = std::min(batch, begin + range.end - at);
      body(Piece{number / columns, number % columns, begin, end, at});
      at += end - begin;
    }
  }
};

// As many columns as near `wanted` make blocks of equal size: whole tiles, or equal shares of one.
inline std::int64_t winograd_block_columns(const WinogradGrid& grid, std::int64_t wanted) {
  const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  if (grid.batch > wanted) return ceil_div(grid.batch, ceil_div(grid.batch, wanted));
  const std::int64_t tiles = grid.rows * grid.columns;
  const std::int64_t blocks = ceil_div(tiles, std::max<std::int64_t>(1, wanted / grid.batch));
  return ceil_div(tiles, blocks) * grid.batch;
}

// Floats of a plane, and a little more, so that the planes do not fall on the same lines of a cache.
inline std::int64_t winograd_plane_stride(std::int64_t elements) { return (elements + 15) / 16 * 16 + 16; }

}  // namespace superstep::kernels
