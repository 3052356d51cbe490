// How the positions of an image are cut into tiles and those into blocks. Internal to the kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "superstep/base/integers.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// Tiles of `tile` x `tile` positions of an image, or of a plane of a volume, the last ones partly outside. A
// column of the products is one sample of one tile; columns are counted through samples, then tiles of a row,
// then rows.
struct WinogradGrid {
  std::int64_t tile, rows, columns, batch;

  WinogradGrid(std::int64_t tile_size, const Image& image)
      : tile(tile_size),
        rows((image.rows() + tile - 1) / tile),
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

  // Calls body(piece, tiles) for neighbouring tiles of a row that have all their samples in the range, the
  // first of which is the piece, and for each piece of a tile that has not (1 tile).
  template <class Body>
  void for_each_run(PartRange range, const Body& body) const {
    for_each_piece(range, [&](const Piece& piece) {
      if (piece.end - piece.begin < batch) return body(piece, std::int64_t{1});
      // The first of a row's tiles stands for all of them.
      if (piece.column > 0 && piece.first - batch >= range.begin) return;
      body(piece, std::min(columns - piece.column, (range.end - piece.first) / batch));
    });
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

// Neighbouring planes of a volume that a block has: the fewer, the more often planes between blocks are
// transformed again; the more, the fewer columns of each fit.
inline std::int64_t winograd_block_planes(std::int64_t planes) {
  constexpr std::int64_t most = 8;
  for (std::int64_t count = most; count > 1; --count)
    if (planes % count == 0) return count;
  return 1;
}

// Elements of a plane, and a little more, so that the planes do not fall on the same lines of a cache and
// whole vectors may be read to its end.
inline std::int64_t winograd_plane_stride(std::int64_t elements, ElementType type = ElementType::f32) {
  const std::int64_t line = 64 / static_cast<std::int64_t>(size_in_bytes(type));
  return (elements + line - 1) / line * line + line;
}

}  // namespace superstep::kernels
