// How depthwise convolutions go over their results: in blocks of channels and tiles of columns, and all rows
// of a tile before the next, so that what a row reads stays in the first-level cache until the last window
// that reaches it. Internal to the depthwise kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "superstep/target/cpu/kernels/convolution/tap_tables.h"
#include "superstep/target/cpu/kernels/core/kernel.h"
#include "superstep/target/cpu/kernels/depthwise/depthwise_loops.h"

namespace superstep::kernels {

// The taps of every pair of a run of rows and a run of columns, as offsets.
class TapOffsets {
 public:
  TapOffsets(const Convolution& c, const TapSide& side) : columns_(side.columns.size()) {
    for (const Run& rows : side.rows)
      for (const Run& columns : side.columns) add(c, side, rows, columns);
    starts_.push_back(sources_.size());
  }

  DepthwiseTaps taps(std::size_t rows, std::size_t columns) const {
    const std::size_t first = starts_[rows * columns_ + columns],
                      end = starts_[rows * columns_ + columns + 1];
    return {static_cast<std::int64_t>(end - first), sources_.data() + first, weights_.data() + first};
  }

 private:
  // Source offsets count from the lowest row that the first result of the run of rows reads.
  void add(const Convolution& c, const TapSide& side, const Run& rows, const Run& columns) {
    starts_.push_back(sources_.size());
    for (const TapSource& row : rows.taps)
      for (const TapSource& column : columns.taps) {
        sources_.push_back(side.source.offset(row.source - lowest_source(rows), column.source));
        weights_.push_back((row.tap * c.window.width + column.tap) * side.source.channels);
      }
  }

  std::size_t columns_;
  std::vector<std::size_t> starts_;
  std::vector<std::int64_t> sources_, weights_;
};

// A stretch of one row, or of several: neighbouring results that see the same taps.
struct Stretch {
  DepthwiseTaps taps;
  std::int64_t result_row, source_row;
  const Run* columns;
  std::int64_t begin, count;  // of the run's columns (positions times micro-batch)
  std::int64_t first_channel, channels;
  const Run* rows = nullptr;
  std::int64_t row_count = 1, rows_left = 0;  // of the run of rows; behind them
};

// How the results are gone over: all rows of a tile of columns, tile after tile, of a block of channels.
struct Walk {
  std::int64_t block, tile;  // channels and columns
  std::int64_t rows = 1;     // of a stretch
};

inline std::int64_t count_rows(const TapSide& side) {
  std::int64_t rows = 0;
  for (const Run& run : side.rows) rows += run.count;
  return rows;
}

// A line is one row of one block of channels.
inline std::int64_t count_lines(const TapSide& side, std::int64_t block) {
  return (side.source.channels + block - 1) / block * count_rows(side);
}

// Calls body(stretch) for the rows in a range, of one tile: `s` with the tile's columns and channels.
template <class Body>
void for_each_row(const TapSide& side, const TapOffsets& offsets, std::size_t columns, PartRange range,
                  std::int64_t together, Stretch s, const Body& body) {
  std::int64_t before = 0;
  for (std::size_t r = 0; r < side.rows.size(); before += side.rows[r++].count) {
    const Run& rows = side.rows[r];
    s.taps = offsets.taps(r, columns);
    s.rows = &rows;
    const std::int64_t end = std::min(rows.count, range.end - before);
    for (std::int64_t i = std::max<std::int64_t>(0, range.begin - before); i < end; i += together) {
      s.result_row = rows.first + i * rows.result_step;
      s.source_row = lowest_source(rows) + i * rows.source_step;
      s.row_count = std::min(together, end - i);
      s.rows_left = end - i - s.row_count;
      body(s);
    }
  }
}

// Calls body(stretch) for the lines in a range.
template <class Body>
void for_each_stretch(const TapSide& side, const TapOffsets& offsets, const Walk& walk, PartRange lines,
                      const Body& body) {
  const std::int64_t rows = count_rows(side);
  for (std::int64_t first = 0, line = 0; first < side.source.channels; first += walk.block, line += rows) {
    const PartRange range{std::max<std::int64_t>(0, lines.begin - line), std::min(rows, lines.end - line)};
    if (range.begin >= range.end) continue;
    for (std::size_t c = 0; c < side.columns.size(); ++c) {
      const std::int64_t total = side.columns[c].count * side.result.batch;
      for (std::int64_t done = 0; done < total; done += walk.tile)
        for_each_row(side, offsets, c, range, walk.rows,
                     {{},
                      0,
                      0,
                      &side.columns[c],
                      done,
                      std::min(walk.tile, total - done),
                      first,
                      std::min(walk.block, side.source.channels - first)},
                     body);
    }
  }
}

// The stretches of one block.
inline std::int64_t count_stretches(const TapSide& side, const Walk& walk) {
  std::int64_t rows = 0, tiles = 0;
  for (const Run& run : side.rows) rows += (run.count + walk.rows - 1) / walk.rows;
  for (const Run& run : side.columns) tiles += (run.count * side.result.batch + walk.tile - 1) / walk.tile;
  return rows * tiles;
}

}  // namespace superstep::kernels
