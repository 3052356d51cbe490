// Forward passes on bytes as batch-reduce products over taps (tap_tables.h), finished tile by tile.
#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/target/cpu/kernels/bytes/byte_kernel_info.h"
#include "superstep/target/cpu/kernels/bytes/byte_tile.h"
#include "superstep/target/cpu/kernels/bytes/byte_weights.h"
#include "superstep/target/cpu/kernels/bytes/integer_finish.h"
#include "superstep/target/cpu/kernels/bytes/simple_steps.h"
#include "superstep/target/cpu/kernels/convolution/tap_tables.h"
#include "superstep/target/cpu/kernels/core/epilogue_run.h"

namespace superstep::kernels {
namespace {

// How a tile's sums become results.
enum class Finish {
  sums,      // copied as they are
  simple,    // a factor a channel, a bias, a tensor added and a rectifier at most: one pass
  epilogue,  // any epilogue: f32 in scratch, the epilogue, then bytes where they are wanted
};

class TapIntegerConvolution final : public Kernel {
 public:
  // `in_registers`: tiles are finished there (byte_tile.h), and only what no simple epilogue can do is left
  // to passes over scratch.
  TapIntegerConvolution(KernelInfo info, const IntegerConvolution& c, TapTables tables,
                        EpilogueRunner epilogue, bool in_registers)
      : Kernel(std::move(info)),
        c_(c),
        weights_(byte_weights(c)),
        t_(std::move(tables)),
        epilogue_(epilogue),
        simple_(simple_steps(c.epilogue)),
        finish_(c.y.type == ElementType::i32 ? Finish::sums
                : simple_.simple             ? Finish::simple
                                             : Finish::epilogue),
        as_f32_(finish_as_f32()),
        as_bytes_(finish_as_bytes()),
        tile_as_f32_(in_registers ? byte_tile_as_f32() : nullptr),
        tile_as_bytes_(in_registers ? byte_tile_as_bytes() : nullptr),
        quantize_(quantize_block()) {
    for (const RowEntry& row : t_.rows)
      tiles_ += static_cast<std::int64_t>(t_.tile_lists[row.tile_list].size());
    const std::int64_t panels = c_.groups * t_.panels;
    stretches_ = std::clamp<std::int64_t>(most_parts / panels, 1, std::max<std::int64_t>(1, tiles_));
    info_.parts = panels * stretches_;
  }

  void run(const Arguments& arguments) const override;
  void run_part(const Arguments& arguments, std::int64_t number) const override;

 private:
  struct Pointers {
    const std::uint8_t* x;
    const std::byte* weights;
    const std::int32_t* tap_sums;
    const float* scale;
    std::byte* y;
    const void* const* epilogue_inputs;
    void* const* epilogue_outputs;
    std::int32_t* sums;  // of one tile
  };
  // A panel of a group: the first of its channels in the result, and how many.
  struct Part {
    std::int64_t group, panel, first_channel, channels;
  };

  Pointers pointers(const Arguments& arguments) const;
  Part part(std::int64_t group, std::int64_t panel) const;
  void run_group(const Pointers& p, std::int64_t group) const;
  void run_tile(const Pointers& p, const Part& part, const RowEntry& row, const Tile& tile) const;
  const TapCall& call_of(const Part& part, const Tile& tile) const;
  void multiply(const Pointers& p, const Part& part, const RowEntry& row, const Tile& tile) const;
  void sum_weights(const Pointers& p, const Part& part, const Tile& tile, std::int32_t* shift) const;
  ByteTile operands_of(const Pointers& p, const Part& part, const RowEntry& row, const Tile& tile) const;
  void apply(const ByteTile& operands, const IntegerBlock& block, bool bytes) const;
  void finish(const Pointers& p, const Part& part, const RowEntry& row, const Tile& tile,
              const std::int32_t* shift) const;
  void write_sums(const Pointers& p, const Part& part, const Tile& tile, const std::int32_t* shift,
                  std::byte* result, std::int64_t stride) const;
  void add_operands(const Pointers& p, const Part& part, std::int64_t row, std::int64_t column,
                    std::int64_t column_step, IntegerBlock& block, float* scale) const;

  IntegerConvolution c_;
  ByteWeights weights_;
  TapTables t_;
  EpilogueRunner epilogue_;
  SimpleSteps simple_;
  Finish finish_;
  IntegerFinish *as_f32_, *as_bytes_;
  ByteTileFunction *tile_as_f32_, *tile_as_bytes_;  // null: sums are in memory before they are finished
  QuantizeFunction* quantize_;
  std::int64_t tiles_ = 0, stretches_ = 1;  // of all rows; parts that the tiles of a panel are divided into
};

TapIntegerConvolution::Part TapIntegerConvolution::part(std::int64_t group, std::int64_t panel) const {
  const std::int64_t before = panel * panel_width;
  return {group, panel, group * weights_.out + before, std::min(panel_width, weights_.out - before)};
}

const TapCall& TapIntegerConvolution::call_of(const Part& part, const Tile& tile) const {
  const bool narrow = t_.panel_kinds == 2 && part.panel == t_.panels - 1;
  return t_.calls[tile.first_call + narrow];
}

ByteTile TapIntegerConvolution::operands_of(const Pointers& p, const Part& part, const RowEntry& row,
                                            const Tile& tile) const {
  const TapCall& call = call_of(part, tile);
  return {.weights = p.weights + part.group * t_.group_bytes + part.panel * t_.panel_bytes,
          .x = p.x + row.source_row * c_.x.row_stride +
               tile.column_in_run * tile.source_step * c_.x.column_stride + part.group * weights_.in,
          .taps = call.count,
          .weight_offsets = &t_.weight_offsets[call.first_offset],
          .source_offsets = &t_.source_offsets[call.first_offset],
          .quads = weights_.in / 4,
          .column_stride = tile.source_step * c_.x.column_stride};
}

void TapIntegerConvolution::multiply(const Pointers& p, const Part& part, const RowEntry& row,
                                     const Tile& tile) const {
  const TapCall& call = call_of(part, tile);
  if (call.count == 0) {
    std::fill_n(p.sums, tile.columns * part.channels, 0);
    return;
  }
  const ByteTile o = operands_of(p, part, row, tile);
  t_.products[call.product](o.weights, o.x, reinterpret_cast<float*>(p.sums), o.taps, o.weight_offsets,
                            o.source_offsets);
}

// The sums of the block from memory or registers.
void TapIntegerConvolution::apply(const ByteTile& operands, const IntegerBlock& block, bool bytes) const {
  if (tile_as_f32_) return (bytes ? tile_as_bytes_ : tile_as_f32_)(operands, block);
  (bytes ? as_bytes_ : as_f32_)(block);
}

// The zero point times the weights that the tile was multiplied with: what its sums have too much.
void TapIntegerConvolution::sum_weights(const Pointers& p, const Part& part, const Tile& tile,
                                        std::int32_t* shift) const {
  std::fill_n(shift, part.channels, 0);
  if (c_.zero_point == 0) return;
  const TapCall& call = call_of(part, tile);
  const std::int64_t tap_bytes = weights_.in * part.channels;
  for (std::uint64_t i = 0; i < call.count; ++i) {
    const auto tap = static_cast<std::int64_t>(t_.weight_offsets[call.first_offset + i]) / tap_bytes;
    const std::int32_t* sums =
        p.tap_sums + (part.group * weights_.taps + tap) * weights_.out + part.panel * panel_width;
    for (std::int64_t channel = 0; channel < part.channels; ++channel) shift[channel] += sums[channel];
  }
  for (std::int64_t channel = 0; channel < part.channels; ++channel) shift[channel] *= c_.zero_point;
}

void TapIntegerConvolution::write_sums(const Pointers& p, const Part& part, const Tile& tile,
                                       const std::int32_t* shift, std::byte* result,
                                       std::int64_t stride) const {
  auto* y = reinterpret_cast<std::int32_t*>(result);
  for (std::int64_t column = 0; column < tile.columns; ++column)
    for (std::int64_t channel = 0; channel < part.channels; ++channel)
      y[column * stride + channel] = p.sums[column * part.channels + channel] - shift[channel];
}

// The factors, the bias and the tensor of a simple epilogue, at the block's first element. `scale`: room for
// the block's scales.
void TapIntegerConvolution::add_operands(const Pointers& p, const Part& part, std::int64_t row,
                                         std::int64_t column, std::int64_t column_step, IntegerBlock& block,
                                         float* scale) const {
  const void* added = take_operands(simple_, p.epilogue_inputs, part.first_channel, scale, block);
  if (!added) return;
  const std::int64_t across = simple_.added_column > 0 ? simple_.added_column : c_.y.column_stride;
  const std::int64_t down = simple_.added_row > 0 ? simple_.added_row : c_.y.row_stride;
  set_added(simple_, added, row * down + column * across + part.first_channel, across * column_step, block);
}

void TapIntegerConvolution::finish(const Pointers& p, const Part& part, const RowEntry& row, const Tile& tile,
                                   const std::int32_t* shift) const {
  const std::int64_t column = tile.position * c_.y.batch + tile.column_in_run * tile.result_step;
  const std::int64_t start =
      row.result_row * c_.y.row_stride + column * c_.y.column_stride + part.first_channel;
  std::byte* result = p.y + start * static_cast<std::int64_t>(size_in_bytes(c_.y.type));
  const std::int64_t stride = c_.y.column_stride * tile.result_step;
  if (finish_ == Finish::sums) return write_sums(p, part, tile, shift, result, stride);
  const bool bytes = c_.y.type == ElementType::u8, simple = finish_ == Finish::simple;
  const float inverse = 1 / c_.y_scale, zero = static_cast<float>(c_.y_zero_point);
  IntegerBlock block{.sums = p.sums,
                     .shift = shift,
                     .scale = p.scale + part.first_channel,
                     .bias = nullptr,
                     .added = nullptr,
                     .added_stride = 0,
                     .slope = simple ? simple_.slope : 1,
                     .result = simple ? static_cast<void*>(result) : p.sums,
                     .result_stride = simple ? stride : part.channels,
                     .columns = tile.columns,
                     .channels = part.channels,
                     .inverse_scale = inverse,
                     .zero_point = zero,
                     .hard_swish = simple && simple_.hard_swish};
  float scale[panel_width];
  if (simple) add_operands(p, part, row.result_row, column, tile.result_step, block, scale);
  apply(operands_of(p, part, row, tile), block, simple && bytes);
  if (simple) return;
  auto* values = reinterpret_cast<float*>(p.sums);
  epilogue_.apply({values, part.channels, bytes ? static_cast<void*>(values) : result, ElementType::f32,
                   bytes ? part.channels : stride, tile.columns, part.channels, nullptr, 0},
                  {row.result_row, column, part.first_channel, tile.result_step}, p.epilogue_inputs,
                  p.epilogue_outputs);
  if (bytes)
    quantize_({values, part.channels, reinterpret_cast<std::uint8_t*>(result), stride, tile.columns,
               part.channels, inverse, zero});
}

void TapIntegerConvolution::run_tile(const Pointers& p, const Part& part, const RowEntry& row,
                                     const Tile& tile) const {
  std::int32_t shift[panel_width];
  if (!tile_as_f32_) multiply(p, part, row, tile);
  sum_weights(p, part, tile, shift);
  finish(p, part, row, tile, shift);
}

void TapIntegerConvolution::run_group(const Pointers& p, std::int64_t group) const {
  const auto run_row = [&](const RowEntry& row, const Part& part) {
    for (const Tile& tile : t_.tile_lists[row.tile_list]) run_tile(p, part, row, tile);
  };
  if (t_.rows_outside) {
    for (const RowEntry& row : t_.rows)
      for (std::int64_t panel = 0; panel < t_.panels; ++panel) run_row(row, part(group, panel));
    return;
  }
  for (std::int64_t panel = 0; panel < t_.panels; ++panel)
    for (const RowEntry& row : t_.rows) run_row(row, part(group, panel));
}

TapIntegerConvolution::Pointers TapIntegerConvolution::pointers(const Arguments& arguments) const {
  const bool scaled = finish_ != Finish::sums;
  const auto* weights = static_cast<const std::byte*>(arguments.inputs[1]);
  return {static_cast<const std::uint8_t*>(arguments.inputs[0]),
          weights,
          reinterpret_cast<const std::int32_t*>(weights + weights_.sums_offset()),
          scaled ? static_cast<const float*>(arguments.inputs[2]) : nullptr,
          static_cast<std::byte*>(arguments.outputs[0]),
          arguments.inputs.data() + (scaled ? 3 : 2),
          arguments.outputs.data() + 1,
          static_cast<std::int32_t*>(arguments.scratch)};
}

// A stretch of the tiles of one panel.
void TapIntegerConvolution::run_part(const Arguments& arguments, std::int64_t number) const {
  const Pointers p = pointers(arguments);
  const std::int64_t panel = number / stretches_;
  const PartRange wanted = part_range(tiles_, number % stretches_, stretches_);
  const Part work = part(panel / t_.panels, panel % t_.panels);
  std::int64_t at = 0;
  for (const RowEntry& row : t_.rows)
    for (const Tile& tile : t_.tile_lists[row.tile_list]) {
      if (at >= wanted.begin && at < wanted.end) run_tile(p, work, row, tile);
      ++at;
    }
}

void TapIntegerConvolution::run(const Arguments& arguments) const {
  const Pointers p = pointers(arguments);
  for (std::int64_t group = 0; group < c_.groups; ++group) run_group(p, group);
}

KernelInfo describe(const IntegerConvolution& c, const TapTables& t, const EpilogueRunner& epilogue,
                    const char* maker) {
  KernelInfo info =
      byte_kernel_info(c, epilogue,
                       fmt::format("{}, tiles of {} x {}", maker,
                                   std::min(panel_width, c.y.channels / c.groups), t.max_columns));
  info.scratch_bytes = static_cast<std::size_t>(t.max_columns * panel_width) * sizeof(std::int32_t);
  return info;
}

// Tables of products that are made by the loops of `maker`, and the rest of the kernel.
Prepared prepare_taps(const IntegerConvolution& c, ProductMaker maker, const char* name, bool in_registers) {
  if (std::string fault = fault_of(c); !fault.empty()) return refuse(name, fault);
  if (sums_rows(c)) return refuse(name, "few channels");
  auto epilogue = byte_epilogue(c);
  if (!epilogue) return refuse(name, epilogue.error());
  const Convolution geometry = geometry_of(c);
  auto tables = make_tap_tables(geometry, forward_side(geometry), maker);
  if (!tables) return refuse(name, tables.error());
  KernelInfo info = describe(c, *tables, *epilogue, name);
  return std::make_unique<TapIntegerConvolution>(std::move(info), c, std::move(*tables), *epilogue,
                                                 in_registers);
}

template <ProductMaker maker>
Prepared prepare_in_memory(const IntegerConvolution& c) {
  return prepare_taps(c, maker, name_of(maker), false);
}

Prepared prepare_in_registers(const IntegerConvolution& c) {
  constexpr const char* name = "in registers";
  if (std::string refusal = byte_tile_refusal(); !refusal.empty()) return refuse(name, refusal);
  if (c.y.type == ElementType::i32) return refuse(name, "sums are wanted in memory");
  return prepare_taps(c, ProductMaker::portable, name, true);
}

}  // namespace

std::string fault_of(const IntegerConvolution& c) {
  if (std::string fault = fault_of(c.x, c.y, c.window, c.groups); !fault.empty()) return fault;
  if (std::string fault = volume_fault(c.x, c.y, c.window); !fault.empty()) return fault;
  if (c.x.type != ElementType::u8) return "the input must be u8";
  if (c.y.type != ElementType::i32 && c.y.type != ElementType::f32 && c.y.type != ElementType::u8)
    return "the output must be i32, f32 or u8";
  if (c.x.channels / c.groups % 4 != 0 && !sums_rows(c))
    return "the input channels of a group are not a multiple of 4";
  if (c.y.type == ElementType::i32 && !c.epilogue.steps.empty()) return "sums in i32 have no epilogue";
  if (c.y.type == ElementType::u8 && !(c.y_scale > 0)) return "the output's scale is not positive";
  return {};
}

namespace {

// Of weights that come from beyond the second-level cache.
double cycles_of_far_weights(double bytes) {
  if (bytes <= 512 * 1024) return 0;
  return bytes / (bytes <= 4 * 1024 * 1024 ? 12 : 5);
}

// Of a group, all positions together: taps that read inside the image times channels in fours, or, of few
// channels, rows of taps.
double summed_quads(const IntegerConvolution& c) {
  if (!sums_rows(c)) return multiply_adds(geometry_of(c)) / static_cast<double>(c.y.channels) / 4;
  const ByteWeights w = byte_weights(c);
  return static_cast<double>(c.y.positions() * w.taps * w.in) / 4;
}

// By the tiles of AVX2: a step takes four of what a processor begins in a cycle, at 0.85 of that rate. Of a
// block of two vectors and four columns it has 46 instructions for 256 products, of one vector and eight
// columns 51, of single columns 8 for 32. Cycles are those of winograd_choice.h, of vectors of 16 lanes: what
// is computed in vectors of 8 counts half, as there.
double byte_cycles_of_pairs(const IntegerConvolution& c) {
  const double in = static_cast<double>(c.x.channels / c.groups),
               out = static_cast<double>(c.y.channels / c.groups);
  const double vectors = static_cast<double>(c.groups) * std::ceil(out / 8);
  const double products = summed_quads(c) * 4 * vectors * 8;
  const auto positions = static_cast<double>(c.y.height * c.y.columns());
  const double instructions = positions < 3 ? 8.0 / 32 : out <= 8 ? 51.0 / 256 : 46.0 / 256;
  const double weights = in * out * static_cast<double>(c.groups * c.window.height * c.window.width);
  return (products * instructions / (4 * 0.85) + positions * vectors * 3) / 2 +
         cycles_of_far_weights(weights);
}

}  // namespace

double byte_cycles(const IntegerConvolution& c) {
  const ByteProducts products = byte_products();
  if (products == ByteProducts::none) return std::numeric_limits<double>::infinity();
  if (products == ByteProducts::pairs) return byte_cycles_of_pairs(c);
  const double in = static_cast<double>(c.x.channels / c.groups), out = static_cast<double>(c.y.channels),
               vectors = static_cast<double>(c.groups * ((c.y.channels / c.groups + 15) / 16));
  // Two products of 64 bytes begin in a cycle; panels of one vector are held up by what they load, windows
  // over short rows by where each column is read (gathered_convolution.cpp; 8 x 8 positions on a Zen 4).
  const std::int64_t given = c.y.channels / c.groups;
  const bool narrow = given <= 16, gathered = given > 32 && c.window.taps() > 1 && c.y.columns() < 14;
  const double begun = narrow ? 1.66 : gathered ? 1.5 : 1.86;
  const double positions = static_cast<double>(c.y.height * c.y.columns());
  const double weights = in * out * static_cast<double>(c.window.height * c.window.width);
  return summed_quads(c) * vectors / begun + positions * vectors * (narrow ? 7 : 5) +
         cycles_of_far_weights(weights);
}

// Measured with AVX2 (mobilenet-v3-small: 897 us apart, 765 together). With VNNI what bytes gain has been
// more than this so far, and nobody has measured it.
double apart_cycles(double values) { return byte_products() == ByteProducts::pairs ? values : 0; }

double quantize_cycles(double values) {
  return (byte_products() == ByteProducts::pairs ? 0.4 : 0.2) * values;
}

IntegerConvolution integer_dense_layer(std::int64_t batch, std::int64_t in, std::int64_t out, ElementType y) {
  IntegerConvolution layer;
  layer.x = dense_image(1, 1, batch, in, ElementType::u8);
  layer.y = dense_image(1, 1, batch, out, y);
  return layer;
}

extern constinit const Implementation<IntegerConvolution> integer_in_registers{"in registers",
                                                                               prepare_in_registers};
extern constinit const Implementation<IntegerConvolution> libxsmm_integer{
    "libxsmm", prepare_in_memory<ProductMaker::libxsmm>};
extern constinit const Implementation<IntegerConvolution> portable_integer{
    "portable", prepare_in_memory<ProductMaker::portable>};

SUPERSTEP_KERNELS(integer_convolution, IntegerConvolution, few_channels_integer, gathered_integer,
                  integer_in_registers, libxsmm_integer, portable_integer)

}  // namespace superstep::kernels
