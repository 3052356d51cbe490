// Forward passes and input gradients as batch-reduce products over taps (tap_tables.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "superstep/base/integers.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/convolution/tap_tables.h"
#include "superstep/target/cpu/kernels/core/epilogue_run.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/dot_product.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "superstep/target/cpu/kernels/product/widened_product.h"

namespace superstep::kernels {

namespace {

// Of a tile's sums where they do not lie in the result.
std::size_t staging_bytes(const TapTables& t) {
  if (!t.staged) return 0;
  return round_up(static_cast<std::size_t>(t.max_columns * panel_width) * sizeof(float), std::size_t{64});
}

class TapConvolution final : public Kernel {
 public:
  TapConvolution(KernelInfo info, const TapSide& side, const Convolution& c, TapTables tables,
                 EpilogueRunner epilogue)
      : Kernel(std::move(info)),
        result_(side.result),
        source_(side.source),
        groups_(c.groups),
        result_channels_(side.result_channels),
        source_channels_(side.source_channels),
        accumulate_(c.accumulate),
        t_(std::move(tables)),
        epilogue_(epilogue) {
    for (const RowEntry& row : t_.rows)
      tiles_ += static_cast<std::int64_t>(t_.tile_lists[row.tile_list].size());
    if (t_.widened) {
      cut_widened();
      return;
    }
    const std::int64_t panels = groups_ * t_.panels;
    stretches_ = std::clamp<std::int64_t>(most_parts / panels, 1, std::max<std::int64_t>(1, tiles_));
    info_.parts = panels * stretches_;
  }

  void run(const Arguments& arguments) const override;
  void run_part(const Arguments& arguments, std::int64_t part) const override;

 private:
  struct Pointers {
    const std::byte *source, *weights;
    std::byte* result;
    const void* const* epilogue_inputs;
    void* const* epilogue_outputs;
    float *staging, *widened;
  };
  // Which part of the work: all tiles of a row for one panel of a group and one depth block.
  struct Part {
    std::int64_t group, panel;
    std::size_t depth;
    std::int64_t first_channel, channels;  // of the result
  };
  // Where a tile's sum is made.
  struct Target {
    float* product;
    std::int64_t stride;
  };

  Pointers pointers(const Arguments& arguments) const;
  void cut_widened();
  void run_widened(const Pointers& p, PartRange tiles, PartRange panels) const;
  void widen(const Pointers& p, std::int64_t group, const RowEntry& row, const Tile& tile) const;
  template <class Body>
  void for_each_tile(PartRange tiles, const Body& body) const;
  const std::byte* source_of(const Pointers& p, const Part& part, const RowEntry& row,
                             const Tile& tile) const;
  void run_group(const Pointers& p, std::int64_t group) const;
  Part part(std::int64_t group, std::int64_t panel, std::size_t depth) const;
  void run_tile(const Pointers& p, const Part& part, const RowEntry& row, const Tile& tile) const;
  void multiply(const Pointers& p, const Part& part, const RowEntry& row, const Tile& tile,
                const Target& target) const;

  Image result_, source_;
  std::int64_t groups_, result_channels_, source_channels_;
  bool accumulate_;
  TapTables t_;
  EpilogueRunner epilogue_;
  std::int64_t tiles_ = 0, stretches_ = 1;  // of all rows; parts that the tiles of a panel are divided into
  std::int64_t chunks_ = 1;                 // parts that the panels of a widened tile are divided into
  WideningLoops loops_{};
};

void clear(float* tile, std::int64_t stride, std::int64_t columns, std::int64_t channels) {
  for (std::int64_t i = 0; i < columns; ++i) std::fill_n(tile + i * stride, channels, 0.0f);
}

const std::byte* TapConvolution::source_of(const Pointers& p, const Part& part, const RowEntry& row,
                                           const Tile& tile) const {
  if (t_.widened) return reinterpret_cast<const std::byte*>(p.widened);
  const std::int64_t start = row.source_row * source_.row_stride +
                             tile.column_in_run * tile.source_step * source_.column_stride +
                             part.group * source_channels_;
  return p.source + start * static_cast<std::int64_t>(size_in_bytes(source_.type));
}

void TapConvolution::multiply(const Pointers& p, const Part& part, const RowEntry& row, const Tile& tile,
                              const Target& target) const {
  const bool narrow = t_.panel_kinds == 2 && part.panel == t_.panels - 1;
  const TapCall& call =
      t_.calls[tile.first_call + part.depth * static_cast<std::size_t>(t_.panel_kinds) + narrow];
  if (call.count == 0) {
    if (part.depth == 0 && !accumulate_) clear(target.product, target.stride, tile.columns, part.channels);
    return;
  }
  const std::byte* source = source_of(p, part, row, tile);
  const std::byte* weights = p.weights + part.group * t_.group_bytes + part.panel * t_.panel_bytes;
  t_.products[call.product](weights, source, target.product, call.count,
                            &t_.weight_offsets[call.first_offset], &t_.source_offsets[call.first_offset]);
}

void TapConvolution::run_tile(const Pointers& p, const Part& part, const RowEntry& row,
                              const Tile& tile) const {
  const std::int64_t column = tile.position * result_.batch + tile.column_in_run * tile.result_step;
  const std::int64_t start =
      row.result_row * result_.row_stride + column * result_.column_stride + part.first_channel;
  std::byte* result = p.result + start * static_cast<std::int64_t>(size_in_bytes(result_.type));
  const std::int64_t result_stride = result_.column_stride * tile.result_step;
  const Target target =
      t_.staged ? Target{p.staging, part.channels} : Target{reinterpret_cast<float*>(result), result_stride};
  multiply(p, part, row, tile, target);
  if (part.depth + 1 != t_.depths.size() || (epilogue_.empty() && !t_.staged)) return;
  epilogue_.apply(
      {target.product, target.stride, result, result_.type, result_stride, tile.columns, part.channels},
      {row.result_row, column, part.first_channel, tile.result_step}, p.epilogue_inputs, p.epilogue_outputs);
}

TapConvolution::Part TapConvolution::part(std::int64_t group, std::int64_t panel, std::size_t depth) const {
  const std::int64_t before = panel * panel_width;
  return {group, panel, depth, group * result_channels_ + before,
          std::min(panel_width, result_channels_ - before)};
}

void TapConvolution::run_group(const Pointers& p, std::int64_t group) const {
  const auto run_row = [&](const RowEntry& row, const Part& part) {
    for (const Tile& tile : t_.tile_lists[row.tile_list]) run_tile(p, part, row, tile);
  };
  if (t_.rows_outside) {
    for (const RowEntry& row : t_.rows)
      for (std::int64_t panel = 0; panel < t_.panels; ++panel) run_row(row, part(group, panel, 0));
    return;
  }
  for (std::int64_t panel = 0; panel < t_.panels; ++panel)
    for (std::size_t depth = 0; depth < t_.depths.size(); ++depth)
      for (const RowEntry& row : t_.rows) run_row(row, part(group, panel, depth));
}

TapConvolution::Pointers TapConvolution::pointers(const Arguments& arguments) const {
  auto* scratch = static_cast<std::byte*>(arguments.scratch);
  return {static_cast<const std::byte*>(arguments.inputs[0]),
          static_cast<const std::byte*>(arguments.inputs[1]),
          static_cast<std::byte*>(arguments.outputs[0]),
          arguments.inputs.data() + 2,
          arguments.outputs.data() + 1,
          reinterpret_cast<float*>(scratch),
          reinterpret_cast<float*>(scratch + staging_bytes(t_))};
}

// body(row, tile) of a range of the tiles, counted through all rows.
template <class Body>
void TapConvolution::for_each_tile(PartRange tiles, const Body& body) const {
  std::int64_t first = 0;
  for (const RowEntry& row : t_.rows) {
    const std::vector<Tile>& list = t_.tile_lists[row.tile_list];
    const auto count = static_cast<std::int64_t>(list.size());
    for (std::int64_t i = std::max<std::int64_t>(0, tiles.begin - first);
         i < std::min(count, tiles.end - first); ++i)
      body(row, list[static_cast<std::size_t>(i)]);
    first += count;
  }
}

// Several panels a part, so that a tile is not widened for each of them; where panels are what is large, few
// parts read the same ones.
void TapConvolution::cut_widened() {
  constexpr std::int64_t least_panels = 2, few_parts = 8;
  loops_ = widening_loops();
  const std::int64_t most_chunks = (t_.panels + least_panels - 1) / least_panels;
  if (t_.rows_outside) {
    stretches_ = std::clamp<std::int64_t>(tiles_, 1, most_parts);
    chunks_ = std::clamp<std::int64_t>(few_parts / stretches_, 1, most_chunks);
  } else {
    chunks_ = std::min(most_chunks, most_parts);
    stretches_ = std::clamp<std::int64_t>(few_parts / chunks_, 1, std::max<std::int64_t>(1, tiles_));
  }
  info_.parts = stretches_ * chunks_;
}

void TapConvolution::widen(const Pointers& p, std::int64_t group, const RowEntry& row,
                           const Tile& tile) const {
  const std::int64_t first = tile.first_source * source_.batch + tile.column_in_run * tile.source_step;
  const std::int64_t stride = source_.column_stride * (tile.source_step / tile.widened_step);
  const auto* source =
      reinterpret_cast<const bf16*>(p.source) + first * source_.column_stride + group * source_channels_;
  float* to = p.widened;
  for (const std::int64_t beyond : t_.source_rows[row.tile_list]) {
    loops_.columns(source + (row.source_row + beyond) * source_.row_stride, stride, tile.widened_columns,
                   source_channels_, to);
    to += tile.widened_columns * source_channels_;
  }
}

// Tiles are widened one by one, or, where the weights do not fit the cache, as many together as do.
void TapConvolution::run_widened(const Pointers& p, PartRange tiles, PartRange panels) const {
  struct Widened {
    const RowEntry* row;
    const Tile* tile;
    float* source;
  };
  constexpr std::size_t most_together = 64;
  std::array<Widened, most_together> together;
  for (std::int64_t group = 0; group < groups_; ++group) {
    std::size_t count = 0;
    std::int64_t taken = 0;
    const auto multiply_all = [&] {
      for (std::int64_t panel = panels.begin; panel < panels.end; ++panel)
        for (const Widened& w : std::span(together).first(count)) {
          Pointers at = p;
          at.widened = w.source;
          run_tile(at, part(group, panel, 0), *w.row, *w.tile);
        }
      count = 0, taken = 0;
    };
    for_each_tile(tiles, [&](const RowEntry& row, const Tile& tile) {
      const bool full = t_.rows_outside || taken + tile.widened_elements > t_.widened_room;
      if (count == most_together || (count > 0 && full)) multiply_all();
      Pointers at = p;
      at.widened += taken;
      widen(at, group, row, tile);
      together[count++] = {&row, &tile, at.widened};
      taken += tile.widened_elements;
    });
    multiply_all();
  }
}

// A stretch of the tiles, counted through all rows, of one panel of one group. Neighbouring parts, which one
// thread mostly takes, share their rows, so that the next layer finds them in the same core's cache; or,
// where weights are what is large, their panel.
void TapConvolution::run_part(const Arguments& arguments, std::int64_t number) const {
  const Pointers p = pointers(arguments);
  if (t_.widened)
    return run_widened(p, part_range(tiles_, number % stretches_, stretches_),
                       part_range(t_.panels, number / stretches_, chunks_));
  const std::int64_t panels = groups_ * t_.panels;
  const std::int64_t panel = t_.rows_outside ? number % panels : number / stretches_;
  const std::int64_t stretch = t_.rows_outside ? number / panels : number % stretches_;
  for (std::size_t depth = 0; depth < t_.depths.size(); ++depth) {
    const Part work = part(panel / t_.panels, panel % t_.panels, depth);
    for_each_tile(part_range(tiles_, stretch, stretches_),
                  [&](const RowEntry& row, const Tile& tile) { run_tile(p, work, row, tile); });
  }
}

void TapConvolution::run(const Arguments& arguments) const {
  const Pointers p = pointers(arguments);
  if (t_.widened) return run_widened(p, {0, tiles_}, {0, t_.panels});
  for (std::int64_t group = 0; group < groups_; ++group) run_group(p, group);
}

double bytes_of(const Image& image) {
  return static_cast<double>(image.element_count()) * static_cast<double>(size_in_bytes(image.type));
}

// The orders of f32's own weights, which these are whatever the type of the image.
template <WeightLayout::Shared order>
WeightTransfer in_f32(WeightTransfer transfer) {
  transfer.layout = order;
  transfer.type = ElementType::f32;
  return transfer;
}
template <WeightLayout::Shared order>
constexpr OwnWeights widened_weights(const char* name) {
  return {name, [](const WeightTransfer& t) { return packed_elements(in_f32<order>(t)); },
          [](const WeightTransfer& t) { return prepare_pack(in_f32<order>(t)); }};
}
constexpr OwnWeights widened_in_out = widened_weights<WeightLayout::taps_in_out>("[tap][in][out], f32"),
                     widened_out_in = widened_weights<WeightLayout::taps_out_in>("[tap][out][in], f32");

WeightLayout layout_of(bool flipped, bool pairs, ProductMaker maker) {
  if (maker == ProductMaker::dot)
    return flipped ? WeightLayout::taps_in_out_rows : WeightLayout::taps_out_in_rows;
  if (flipped) return pairs ? WeightLayout::taps_out_in_pairs : WeightLayout::taps_out_in;
  return pairs ? WeightLayout::taps_in_out_pairs : WeightLayout::taps_in_out;
}

KernelInfo describe(const Convolution& c, const TapSide& side, const TapTables& t,
                    const EpilogueRunner& epilogue, ProductMaker maker) {
  KernelInfo info;
  info.name = fmt::format("{}, {}{}, tiles of {} x {}{}{}", side.flipped ? "input gradient" : "convolution",
                          name_of(maker), t.widened ? ", bf16 in f32" : "",
                          std::min(panel_width, side.result_channels), t.max_columns,
                          t.depths.size() > 1 ? fmt::format(", {} depth blocks", t.depths.size()) : "",
                          c.epilogue.steps.empty() ? "" : " + " + to_string(c.epilogue));
  info.flops = 2 * multiply_adds(c);
  info.bytes = bytes_of(side.source) + bytes_of(side.result) * (c.accumulate ? 2 : 1) +
               static_cast<double>(c.groups * t.group_bytes) +
               static_cast<double>(side.result.element_count()) * epilogue.bytes_per_element();
  info.inputs = 2 + epilogue.inputs();
  info.outputs = 1 + epilogue.outputs();
  info.scratch_bytes = staging_bytes(t) + static_cast<std::size_t>(t.widened_room) * sizeof(float);
  info.weights = t.widened ? (side.flipped ? WeightLayout(widened_out_in) : WeightLayout(widened_in_out))
                           : layout_of(side.flipped, t.pairs, maker);
  info.arithmetic = multiplied_as(side.source.type);
  return info;
}

// All positions of a pointwise convolution form one row when no image has gaps.
Convolution with_joined_rows(Convolution c) {
  if (!c.window.is_pointwise() || c.x.planes != c.y.planes || c.x.height != c.y.height ||
      c.x.width != c.y.width)
    return c;
  if (!c.x.rows_join() || !c.y.rows_join()) return c;
  for (const EpilogueStep& step : c.epilogue.steps)
    if (step.column_stride != 0 || step.row_stride != 0) return c;
  for (Image* image : {&c.x, &c.y}) {
    image->width *= image->height;
    image->height = image->planes = 1;
    image->row_stride = image->columns() * image->column_stride;
  }
  return c;
}

Prepared prepare_taps(const Convolution& description, ProductMaker maker,
                      TapSide (*side_of)(const Convolution&)) {
  if (std::string fault = fault_of(description); !fault.empty()) return refuse(name_of(maker), fault);
  const Convolution c = with_joined_rows(description);
  const TapSide side = side_of(c);
  if (c.accumulate && side.result.type != ElementType::f32)
    return refuse(name_of(maker), "only an f32 result can be added to; the epilogue's `add` reads bf16");
  const std::int64_t columns = side.result.height * side.result.columns();
  if (maker == ProductMaker::dot && side.result_channels > most_dot_rows(columns))
    return refuse(name_of(maker), fmt::format("more than {} outputs", most_dot_rows(columns)));
  auto epilogue = EpilogueRunner::prepare(c.epilogue, side.result);
  if (!epilogue) return refuse(name_of(maker), epilogue.error());
  auto tables = make_tap_tables(c, side, maker);
  if (!tables) return refuse(name_of(maker), tables.error());
  KernelInfo info = describe(c, side, *tables, *epilogue, maker);
  return std::make_unique<TapConvolution>(std::move(info), side, c, std::move(*tables), *epilogue);
}

template <ProductMaker maker>
Prepared prepare_forward(const Convolution& convolution) {
  return prepare_taps(convolution, maker, forward_side);
}

template <ProductMaker maker>
Prepared prepare_input_gradient(const Convolution& convolution) {
  return prepare_taps(convolution, maker, gradient_side);
}

}  // namespace

extern constinit const Implementation<Convolution> few_outputs_forward{"few outputs",
                                                                       prepare_forward<ProductMaker::dot>};
extern constinit const Implementation<Convolution> libxsmm_forward{"libxsmm",
                                                                   prepare_forward<ProductMaker::libxsmm>};
extern constinit const Implementation<Convolution> portable_forward{"portable",
                                                                    prepare_forward<ProductMaker::portable>};
extern constinit const Implementation<Convolution> few_inputs_gradient{
    "few outputs", prepare_input_gradient<ProductMaker::dot>};
extern constinit const Implementation<Convolution> libxsmm_input_gradient{
    "libxsmm", prepare_input_gradient<ProductMaker::libxsmm>};
extern constinit const Implementation<Convolution> portable_input_gradient{
    "portable", prepare_input_gradient<ProductMaker::portable>};

}  // namespace superstep::kernels
