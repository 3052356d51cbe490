// Tables that drive a convolution as sums over taps of batch-reduce products. Internal to the kernels.
//
// The result is cut into tiles: a run of columns of one row (tap_plan.h), few enough that a tile stays in the
// first-level cache between its product and its epilogue. A tile is one batch-reduce product a panel of 64
// result channels; rows that see the same taps share their tables of offsets. When a panel of weights is too
// large for the second-level cache the sum is cut into parts ("depth blocks") and the tiles are gone over
// once a part.
//
// Where pairs of bf16 are slow (pair_rate.h) a bf16 source is multiplied in f32: what a tile reads is widened
// once, into scratch, for all panels of weights, which are f32 (`widened`). Where the weights do not fit the
// cache, as many tiles as do are widened together, for each panel to be read once.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "superstep/target/cpu/kernels/convolution/tap_plan.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"

namespace superstep::kernels {

// A convolution seen from its result.
struct TapSide {
  Image result, source;
  std::int64_t result_channels, source_channels;  // of a group
  std::vector<Run> planes, rows, columns;
  bool flipped;  // an input gradient: the source is dy
};

TapSide forward_side(const Convolution& convolution);
TapSide gradient_side(const Convolution& convolution);

// A part of the sum: some source channels of every tap.
struct DepthBlock {
  std::int64_t first_channel, channels;
};

// One product of a tile: which kernel, and where its offsets start.
struct TapCall {
  std::size_t product, first_offset;
  std::uint64_t count;  // taps; 0: none reaches the tile
};

struct Tile {
  std::int64_t position;       // of the run's first result along the width
  std::int64_t column_in_run;  // columns of the run (positions times micro-batch) before the tile
  std::int64_t columns;
  std::int64_t result_step, source_step;
  std::size_t first_call;  // then [depth block][kind of panel]
  // What it reads of each row of the source, from which position on, where that is widened.
  std::int64_t first_source = 0, widened_columns = 0, widened_step = 1, widened_elements = 0;
};

struct RowEntry {
  std::int64_t result_row;
  std::int64_t source_row;  // the lowest one read
  std::size_t tile_list;
};

struct TapTables {
  std::vector<DepthBlock> depths;
  std::vector<RowEntry> rows;
  std::vector<std::vector<Tile>> tile_lists;  // one for all rows that see the same taps
  std::vector<TapCall> calls;
  std::vector<BatchReduceProduct> products;
  std::vector<std::uint64_t> weight_offsets, source_offsets;  // bytes
  std::int64_t panels = 1, panel_kinds = 1;                   // the last panel may be narrower: a second kind
  std::int64_t panel_bytes = 0, group_bytes = 0;              // of the packed weights
  std::int64_t max_columns = 1;                               // of a tile
  bool rows_outside = true;  // all weights fit the cache: finish a row before the next
  bool staged = false;       // products go to scratch because the result is not f32
  bool pairs = false;        // of the weights' layout
  bool widened = false;
  std::vector<std::vector<std::int64_t>> source_rows;  // widened, beyond the lowest one: one list a tile list
  std::int64_t widened_room = 0;                       // elements: of the largest tile, or of several
};

std::expected<TapTables, std::string> make_tap_tables(const Convolution& convolution, const TapSide& side,
                                                      ProductMaker maker);

}  // namespace superstep::kernels
