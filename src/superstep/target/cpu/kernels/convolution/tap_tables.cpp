#include "superstep/target/cpu/kernels/convolution/tap_tables.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "superstep/target/cpu/kernels/core/caches.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"

namespace superstep::kernels {

namespace {

// Of weights kept in the second-level cache.
std::int64_t panel_bytes_limit() { return second_level_cache() * 3 / 8; }
constexpr std::int64_t tile_bytes = 16 * 1024;  // a result tile in the first-level cache
constexpr std::int64_t longest_tile = 504;      // columns
// Over fewer positions weights are what takes time: in pairs of bf16 half the bytes come from memory.
constexpr std::int64_t least_widened_positions = 12;

class TapTableBuilder {
 public:
  TapTableBuilder(const Convolution& c, const TapSide& side, ProductMaker maker)
      : c_(c), side_(side), maker_(maker), bf16_(side.source.type == ElementType::bf16) {}

  std::expected<TapTables, std::string> build();

 private:
  // Of what is multiplied.
  ElementType type() const { return t_.widened ? ElementType::f32 : side_.source.type; }
  std::int64_t element_size() const { return static_cast<std::int64_t>(size_in_bytes(type())); }
  std::int64_t panel_channels(std::int64_t kind) const {
    return kind == 0 ? std::min(panel_width, side_.result_channels) : side_.result_channels % panel_width;
  }
  // Source channels in the packed weights: pairs are padded.
  std::int64_t stored_depth() const {
    return t_.pairs ? (side_.source_channels + 1) / 2 * 2 : side_.source_channels;
  }

  VolumeGeometry geometry() const { return {c_.window.height, side_.result.rows(), side_.source.rows()}; }
  bool widens() const;
  void choose_panels();
  void choose_tiles();
  void choose_depths();
  std::vector<Tile> make_tiles(const Run& rows);
  void add_rows(const Run& planes, const Run& run);
  void add_tiles(std::vector<Tile>& tiles, const Run& rows, const Run& columns);
  Tile tile_of(const Run& rows, const Run& columns, std::int64_t done);
  void add_call(const Run& rows, const Run& columns, const Tile& tile, const DepthBlock& depth,
                std::int64_t channels);
  std::int64_t source_of(const Run& rows, const Run& columns, const Tile& tile, std::size_t row,
                         std::size_t column) const;
  ProductShape shape_of(const Tile& tile, const DepthBlock& depth, std::int64_t channels) const;
  std::size_t product_for(const ProductShape& shape);

  const Convolution& c_;
  const TapSide& side_;
  ProductMaker maker_;
  bool bf16_;
  TapTables t_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>,
           std::size_t>
      made_;
  std::string refusal_;
};

bool TapTableBuilder::widens() const {
  return bf16_ && maker_ == ProductMaker::libxsmm && multiplied_as(side_.source.type) == ElementType::f32 &&
         side_.result.height * side_.result.columns() >= least_widened_positions;
}

void TapTableBuilder::choose_panels() {
  const std::int64_t taps = c_.window.taps(), channels = side_.result_channels;
  t_.widened = widens();
  t_.pairs = bf16_ && maker_ == ProductMaker::libxsmm && !t_.widened;
  t_.staged = side_.result.type != ElementType::f32;
  t_.panels = (channels + panel_width - 1) / panel_width;
  t_.panel_kinds = channels > panel_width && channels % panel_width != 0 ? 2 : 1;
  t_.panel_bytes = taps * stored_depth() * panel_width * element_size();
  t_.group_bytes = taps * stored_depth() * channels * element_size();
}

// Few channels would make tiles so long that there were not enough of them to share. What is widened for a
// tile stays in the second-level cache.
void TapTableBuilder::choose_tiles() {
  t_.max_columns = std::clamp<std::int64_t>(tile_bytes / 4 / panel_channels(0) / 6 * 6, 6, longest_tile);
  if (!t_.widened) return;
  const std::int64_t rows = c_.window.depth * c_.window.height;
  const std::int64_t fitting = panel_bytes_limit() / (rows * side_.source_channels * element_size()) / 6 * 6;
  t_.max_columns = std::clamp<std::int64_t>(fitting, 6, t_.max_columns);
}

// As many channels as let a panel of weights fit, in multiples of 64. A staged result has one block, because
// its partial sums have no place of their own.
void TapTableBuilder::choose_depths() {
  const std::int64_t channel_bytes = c_.window.taps() * panel_channels(0) * element_size();
  std::int64_t channels = std::max<std::int64_t>(64, panel_bytes_limit() / channel_bytes / 64 * 64);
  if (t_.staged || t_.widened || channels >= side_.source_channels) channels = side_.source_channels;
  for (std::int64_t first = 0; first < side_.source_channels; first += channels)
    t_.depths.push_back({first, std::min(channels, side_.source_channels - first)});
  t_.rows_outside = t_.depths.size() == 1 && t_.group_bytes <= panel_bytes_limit();
}

ProductShape TapTableBuilder::shape_of(const Tile& tile, const DepthBlock& depth,
                                       std::int64_t channels) const {
  ProductShape shape;
  shape.m = channels;
  shape.n = tile.columns;
  shape.k = depth.channels;
  shape.a_stride = maker_ == ProductMaker::dot ? side_.source_channels : channels;
  shape.b_n_stride =
      t_.widened ? side_.source_channels * tile.widened_step : side_.source.column_stride * tile.source_step;
  shape.c_stride = t_.staged ? channels : side_.result.column_stride * tile.result_step;
  shape.accumulate = c_.accumulate || depth.first_channel > 0;
  shape.type = type();
  shape.pairs = t_.pairs;
  return shape;
}

std::size_t TapTableBuilder::product_for(const ProductShape& s) {
  const auto key = std::tuple(s.m, s.n, s.k, s.b_n_stride, s.c_stride, s.accumulate);
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  auto product = BatchReduceProduct::prepare(s, maker_);
  if (!product) {
    refusal_ = product.error();
    return 0;
  }
  t_.products.push_back(*product);
  return made_[key] = t_.products.size() - 1;
}

// Where a tap of a row and of a column begins to read, in elements: beyond the lowest of the source, or in
// what was widened, [row][column][channel].
std::int64_t TapTableBuilder::source_of(const Run& rows, const Run& columns, const Tile& tile,
                                        std::size_t row, std::size_t column) const {
  const std::int64_t position = columns.taps[column].source;
  if (!t_.widened) return side_.source.offset(rows.taps[row].source - lowest_source(rows), position);
  const std::int64_t before = (position - tile.first_source) * side_.source.batch;
  return (static_cast<std::int64_t>(row) * tile.widened_columns + before) * side_.source_channels;
}

void TapTableBuilder::add_call(const Run& rows, const Run& columns, const Tile& tile, const DepthBlock& depth,
                               std::int64_t channels) {
  TapCall call{0, t_.weight_offsets.size(), rows.taps.size() * columns.taps.size()};
  if (call.count > 0) call.product = product_for(shape_of(tile, depth, channels));
  for (std::size_t row = 0; row < rows.taps.size(); ++row)
    for (std::size_t column = 0; column < columns.taps.size(); ++column) {
      const std::int64_t tap = rows.taps[row].tap * c_.window.width + columns.taps[column].tap;
      const std::int64_t weight = tap * stored_depth() * channels +
                                  depth.first_channel * (maker_ == ProductMaker::dot ? 1 : channels);
      const std::int64_t source = source_of(rows, columns, tile, row, column) + depth.first_channel;
      t_.weight_offsets.push_back(static_cast<std::uint64_t>(weight * element_size()));
      t_.source_offsets.push_back(static_cast<std::uint64_t>(source * element_size()));
    }
  t_.calls.push_back(call);
}

// With one tap along the width, columns between those it reads are not widened.
Tile TapTableBuilder::tile_of(const Run& rows, const Run& columns, std::int64_t done) {
  const std::int64_t total = columns.count * side_.result.batch;
  Tile tile{columns.first,       done,           std::min(t_.max_columns, total - done), columns.result_step,
            columns.source_step, t_.calls.size()};
  if (!t_.widened || columns.taps.empty()) return tile;
  tile.first_source = lowest_source(columns);
  std::int64_t last_source = tile.first_source;
  for (const TapSource& tap : columns.taps) last_source = std::max(last_source, tap.source);
  tile.widened_step = columns.taps.size() == 1 ? 1 : columns.source_step;
  tile.widened_columns =
      (tile.columns - 1) * tile.widened_step + 1 + (last_source - tile.first_source) * side_.source.batch;
  tile.widened_elements =
      static_cast<std::int64_t>(rows.taps.size()) * tile.widened_columns * side_.source_channels;
  t_.widened_room = std::max(t_.widened_room, tile.widened_elements);
  return tile;
}

void TapTableBuilder::add_tiles(std::vector<Tile>& tiles, const Run& rows, const Run& columns) {
  const std::int64_t total = columns.count * side_.result.batch;
  for (std::int64_t done = 0; done < total; done += t_.max_columns) {
    tiles.push_back(tile_of(rows, columns, done));
    for (const DepthBlock& depth : t_.depths)
      for (std::int64_t kind = 0; kind < t_.panel_kinds; ++kind)
        add_call(rows, columns, tiles.back(), depth, panel_channels(kind));
  }
}

std::vector<Tile> TapTableBuilder::make_tiles(const Run& rows) {
  std::vector<Tile> tiles;
  for (const Run& columns : side_.columns) add_tiles(tiles, rows, columns);
  return tiles;
}

// The rows of a run in each of the planes of its run.
void TapTableBuilder::add_rows(const Run& planes, const Run& run) {
  const std::int64_t source = lowest_source(run), result_rows = side_.result.rows(),
                     source_rows = side_.source.rows();
  for (std::int64_t plane = 0; plane < planes.count; ++plane)
    for (std::int64_t i = 0; i < run.count; ++i)
      t_.rows.push_back({run.first + plane * planes.result_step * result_rows + i * run.result_step,
                         source + plane * planes.source_step * source_rows + i * run.source_step,
                         t_.tile_lists.size() - 1});
}

std::expected<TapTables, std::string> TapTableBuilder::build() {
  choose_panels();
  choose_tiles();
  choose_depths();
  for (const Run& planes : side_.planes)
    for (const Run& rows : side_.rows) {
      const Run run = joined_run(planes, rows, geometry());
      t_.tile_lists.push_back(make_tiles(run));
      t_.source_rows.emplace_back();
      for (const TapSource& row : run.taps) t_.source_rows.back().push_back(row.source - lowest_source(run));
      if (!refusal_.empty()) return std::unexpected(refusal_);
      add_rows(planes, run);
    }
  if (t_.widened && t_.group_bytes > panel_bytes_limit())
    t_.widened_room = std::max(t_.widened_room, panel_bytes_limit() / element_size());
  std::sort(t_.rows.begin(), t_.rows.end(),
            [](const RowEntry& a, const RowEntry& b) { return a.result_row < b.result_row; });
  return std::move(t_);
}

}  // namespace

// Runs of several positions that are not neighbours have evenly spaced columns only for one sample.
TapSide forward_side(const Convolution& c) {
  return {c.y,
          c.x,
          c.y.channels / c.groups,
          c.x.channels / c.groups,
          forward_runs(planes_of(c), true),
          forward_runs(rows_of(c), true),
          forward_runs(columns_of(c), c.x.batch == 1),
          false};
}

TapSide gradient_side(const Convolution& c) {
  return {c.x,
          c.y,
          c.x.channels / c.groups,
          c.y.channels / c.groups,
          gradient_runs(planes_of(c), true),
          gradient_runs(rows_of(c), true),
          gradient_runs(columns_of(c), c.x.batch == 1),
          true};
}

std::expected<TapTables, std::string> make_tap_tables(const Convolution& convolution, const TapSide& side,
                                                      ProductMaker maker) {
  return TapTableBuilder(convolution, side, maker).build();
}

}  // namespace superstep::kernels
