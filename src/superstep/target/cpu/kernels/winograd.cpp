#include "superstep/target/cpu/kernels/winograd.h"

#include <fmt/format.h>

#include "superstep/target/cpu/kernels/epilogue_run.h"
#include "superstep/target/cpu/kernels/winograd_grid.h"
#include "superstep/target/cpu/kernels/winograd_loops.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t block_bytes = 448 * 1024;  // of v and m in the second-level cache
constexpr std::int64_t least_columns = 24;        // of a block: all weights are read once a block
constexpr std::int64_t enough_parts = 8;          // below it panels are parts too

// A convolution seen from its result; an input gradient is one of dy with the window turned round.
struct Side {
  Image result, source;
  std::int64_t pad_top, pad_left;
  bool flipped;
};

struct Blocking {
  std::int64_t columns;  // of a block
  std::int64_t blocks, panels;
  std::int64_t v_stride, m_stride;  // floats between planes
  std::int64_t panel_groups;        // parts that a block is divided into
};

Blocking blocking_of(const WinogradGrid& grid, const Side& side) {
  const std::int64_t in = side.source.channels, out = side.result.channels;
  const std::int64_t column_bytes = grid.planes() * 4 * (in + std::min(out, panel_width));
  Blocking b{};
  b.columns = winograd_block_columns(grid, std::max(least_columns, block_bytes / column_bytes));
  b.blocks = (grid.count() + b.columns - 1) / b.columns;
  b.panels = (out + panel_width - 1) / panel_width;
  b.v_stride = winograd_plane_stride(b.columns * in);
  b.m_stride = winograd_plane_stride(b.columns * std::min(out, panel_width));
  b.panel_groups =
      b.blocks >= enough_parts ? 1 : std::min(b.panels, (enough_parts + b.blocks - 1) / b.blocks);
  return b;
}

// Products of a block by width of panel and number of columns: [full or last panel][full or last block].
using Products = BatchReduceProduct[2][2];

class WinogradConvolution final : public Kernel {
 public:
  WinogradConvolution(KernelInfo info, const WinogradGrid& grid, const Side& side, const Blocking& blocking,
                      const Products& products, const EpilogueRunner& epilogue, bool accumulate)
      : Kernel(std::move(info)),
        grid_(grid),
        side_(side),
        b_(blocking),
        epilogue_(epilogue),
        accumulate_(accumulate),
        loops_(winograd_loops(grid.tile)) {
    for (int i = 0; i < 4; ++i) products_[i / 2][i % 2] = products[i / 2][i % 2];
  }

  void run(const Arguments& arguments) const override {
    for (std::int64_t block = 0; block < b_.blocks; ++block) run_block(arguments, block, {0, b_.panels});
  }

  void run_part(const Arguments& arguments, std::int64_t part) const override {
    const PartRange panels = part_range(b_.panels, part % b_.panel_groups, b_.panel_groups);
    const PartRange blocks = part_range(b_.blocks, part / b_.panel_groups, info_.parts / b_.panel_groups);
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) run_block(arguments, block, panels);
  }

 private:
  using Piece = WinogradGrid::Piece;

  void run_block(const Arguments& arguments, std::int64_t block, PartRange panels) const;
  void transform_input(const float* source, PartRange columns, float* v) const;
  void multiply(const float* u, const float* v, float* m, std::int64_t panel, bool last_block) const;
  void transform_output(const float* m, PartRange columns, std::int64_t panel, float* result) const;
  void finish(const Arguments& arguments, PartRange columns, std::int64_t panel) const;
  void finish_rows(const Arguments& arguments, std::int64_t panel, const Piece& piece,
                   std::int64_t tiles) const;
  std::int64_t panel_channels(std::int64_t panel) const {
    return std::min(panel_width, side_.result.channels - panel * panel_width);
  }

  WinogradGrid grid_;
  Side side_;
  Blocking b_;
  Products products_;
  EpilogueRunner epilogue_;
  bool accumulate_;
  WinogradLoops loops_;
};

void WinogradConvolution::transform_input(const float* source, PartRange columns, float* v) const {
  const Image& image = side_.source;
  const std::int64_t size = grid_.tile + 2, channels = image.channels;
  const bool joined = image.column_stride == channels;
  grid_.for_each_piece(columns, [&](const Piece& piece) {
    const std::int64_t row = piece.row * grid_.tile - side_.pad_top,
                       column = piece.column * grid_.tile - side_.pad_left;
    const std::int64_t samples = piece.end - piece.begin;
    const auto inside = [&](std::int64_t start, std::int64_t extent) {
      return WinogradRun::Range{std::max<std::int64_t>(0, -start), std::min(size, extent - start)};
    };
    loops_.input(
        {.square = const_cast<float*>(source) + image.offset(row, column) + piece.begin * image.column_stride,
         .row_stride = image.row_stride,
         .column_stride = image.batch * image.column_stride,
         .rows = inside(row, image.height),
         .columns = inside(column, image.width),
         .run_stride = image.column_stride,
         .planes = v + (piece.first - columns.begin) * channels,
         .plane_stride = b_.v_stride,
         .plane_run_stride = channels,
         .runs = joined ? 1 : samples,
         .length = joined ? samples * channels : channels});
  });
}

void WinogradConvolution::multiply(const float* u, const float* v, float* m, std::int64_t panel,
                                   bool last_block) const {
  const std::int64_t channels = panel_channels(panel);
  const BatchReduceProduct& product = products_[channels < panel_width][last_block];
  for (std::int64_t plane = 0; plane < grid_.planes(); ++plane)
    product(u + plane * side_.source.channels * channels, v + plane * b_.v_stride, m + plane * b_.m_stride);
}

void WinogradConvolution::transform_output(const float* m, PartRange columns, std::int64_t panel,
                                           float* result) const {
  const Image& image = side_.result;
  const std::int64_t channels = panel_channels(panel);
  const bool joined = image.column_stride == channels;
  grid_.for_each_piece(columns, [&](const Piece& piece) {
    const std::int64_t row = piece.row * grid_.tile, column = piece.column * grid_.tile;
    const std::int64_t samples = piece.end - piece.begin;
    loops_.output({.square = result + image.offset(row, column) + piece.begin * image.column_stride +
                             panel * panel_width,
                   .row_stride = image.row_stride,
                   .column_stride = image.batch * image.column_stride,
                   .rows = {0, std::min(grid_.tile, image.height - row)},
                   .columns = {0, std::min(grid_.tile, image.width - column)},
                   .run_stride = image.column_stride,
                   .planes = const_cast<float*>(m) + (piece.first - columns.begin) * channels,
                   .plane_stride = b_.m_stride,
                   .plane_run_stride = channels,
                   .runs = joined ? 1 : samples,
                   .length = joined ? samples * channels : channels,
                   .accumulate = accumulate_});
  });
}

// The epilogue over all rows of `tiles` neighbouring tiles from the piece on: row by row when their samples
// are all there, else position by position.
void WinogradConvolution::finish_rows(const Arguments& arguments, std::int64_t panel, const Piece& piece,
                                      std::int64_t tiles) const {
  const Image& image = side_.result;
  const std::int64_t channels = panel_channels(panel), samples = piece.end - piece.begin;
  const std::int64_t first = piece.column * grid_.tile,
                     end = std::min(image.width, first + tiles * grid_.tile);
  const bool whole = samples == grid_.batch;
  const std::int64_t step = whole ? end - first : 1;
  const std::int64_t last_row = std::min(image.height, (piece.row + 1) * grid_.tile);
  for (std::int64_t row = piece.row * grid_.tile; row < last_row; ++row)
    for (std::int64_t at = first; at < end; at += step) {
      const std::int64_t column = at * image.batch + piece.begin, channel = panel * panel_width;
      float* result = static_cast<float*>(arguments.outputs[0]) + row * image.row_stride +
                      column * image.column_stride + channel;
      epilogue_.apply({result, image.column_stride, result, ElementType::f32, image.column_stride,
                       step * samples, channels, nullptr, 0},
                      {row, column, channel}, arguments.inputs.data() + 2, arguments.outputs.data() + 1);
    }
}

void WinogradConvolution::finish(const Arguments& arguments, PartRange columns, std::int64_t panel) const {
  if (epilogue_.empty()) return;
  grid_.for_each_piece(columns, [&](const Piece& piece) {
    if (piece.end - piece.begin < grid_.batch) return finish_rows(arguments, panel, piece, 1);
    // The first of a row's tiles stands for all of them.
    if (piece.column > 0 && piece.first - grid_.batch >= columns.begin) return;
    const std::int64_t tiles =
        std::min(grid_.columns - piece.column, (columns.end - piece.first) / grid_.batch);
    finish_rows(arguments, panel, piece, tiles);
  });
}

void WinogradConvolution::run_block(const Arguments& arguments, std::int64_t block, PartRange panels) const {
  const PartRange columns{block * b_.columns, std::min(grid_.count(), (block + 1) * b_.columns)};
  auto* v = static_cast<float*>(arguments.scratch);
  float* m = v + grid_.planes() * b_.v_stride;
  const auto* u = static_cast<const float*>(arguments.inputs[1]);
  auto* result = static_cast<float*>(arguments.outputs[0]);
  transform_input(static_cast<const float*>(arguments.inputs[0]), columns, v);
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    multiply(u + panel * panel_width * side_.source.channels * grid_.planes(), v, m, panel,
             columns.end - columns.begin < b_.columns);
    transform_output(m, columns, panel, result);
    finish(arguments, columns, panel);
  }
}

Side side_of(const Convolution& c, bool flipped) {
  const Window& w = c.window;
  return flipped ? Side{c.x, c.y, 2 - w.pad_top, 2 - w.pad_left, true}
                 : Side{c.y, c.x, w.pad_top, w.pad_left, false};
}

std::string make_products(const WinogradGrid& grid, const Side& side, const Blocking& b, ProductMaker maker,
                          Products& products) {
  const std::int64_t out = side.result.channels, in = side.source.channels;
  for (int narrow = 0; narrow < 2; ++narrow)
    for (int last = 0; last < 2; ++last) {
      ProductShape shape;
      shape.m = narrow ? out % panel_width : std::min(out, panel_width);
      shape.n = last ? grid.count() % b.columns : std::min(b.columns, grid.count());
      if (shape.m == 0 || shape.n == 0) continue;
      shape.k = shape.b_n_stride = in;
      shape.a_stride = shape.c_stride = shape.m;
      auto product = BatchReduceProduct::prepare(shape, maker);
      if (!product) return product.error();
      products[narrow][last] = *product;
    }
  return {};
}

WeightLayout layout_of(std::int64_t tile, bool flipped) {
  static constexpr WeightLayout layouts[2][3] = {
      {WeightLayout::winograd_2_in_out, WeightLayout::winograd_3_in_out, WeightLayout::winograd_4_in_out},
      {WeightLayout::winograd_2_out_in, WeightLayout::winograd_3_out_in, WeightLayout::winograd_4_out_in}};
  return layouts[flipped][tile - smallest_winograd_tile];
}

KernelInfo describe(const Convolution& c, const WinogradGrid& grid, const Side& side, const Blocking& b,
                    const EpilogueRunner& epilogue) {
  const auto weights = static_cast<double>(grid.planes() * c.x.channels * c.y.channels);
  const auto results = static_cast<double>(side.result.element_count());
  KernelInfo info;
  info.name = fmt::format("{}, Winograd F({}x{}, 3x3), {} blocks of {} columns{}",
                          side.flipped ? "input gradient" : "convolution", grid.tile, grid.tile, b.blocks,
                          b.columns, c.epilogue.steps.empty() ? "" : " + " + to_string(c.epilogue));
  info.flops = 2 * multiply_adds(c);
  info.bytes =
      4 * (static_cast<double>(side.source.element_count()) + weights + results * (c.accumulate ? 2 : 1)) +
      results * epilogue.bytes_per_element();
  info.inputs = 2 + epilogue.inputs();
  info.outputs = 1 + epilogue.outputs();
  info.scratch_bytes = static_cast<std::size_t>(grid.planes() * (b.v_stride + b.m_stride)) * sizeof(float);
  info.parts = std::min(b.blocks, most_parts) * b.panel_groups;
  info.weights = layout_of(grid.tile, side.flipped);
  return info;
}

Prepared prepare_side(const Convolution& c, std::int64_t tile, ProductMaker maker, bool flipped) {
  if (std::string fault = winograd_fault(c); !fault.empty()) return refuse("winograd", fault);
  const Side side = side_of(c, flipped);
  const WinogradGrid grid(tile, side.result);
  const Blocking blocking = blocking_of(grid, side);
  auto epilogue = EpilogueRunner::prepare(c.epilogue, side.result);
  if (!epilogue) return refuse("winograd", epilogue.error());
  Products products;
  if (std::string reason = make_products(grid, side, blocking, maker, products); !reason.empty())
    return refuse("winograd", reason);
  return std::make_unique<WinogradConvolution>(describe(c, grid, side, blocking, *epilogue), grid, side,
                                               blocking, products, *epilogue, c.accumulate);
}

}  // namespace

std::string winograd_fault(const Convolution& c) {
  if (std::string fault = fault_of(c); !fault.empty()) return fault;
  const Window& w = c.window;
  if (w.height != 3 || w.width != 3) return "the window is not 3 x 3";
  if (w.stride_h != 1 || w.stride_w != 1) return "the window moves by more than one position";
  if (w.dilation_h != 1 || w.dilation_w != 1) return "the window's taps lie apart";
  if (c.groups != 1) return "the channels are in groups";
  if (c.x.type != ElementType::f32 || c.y.type != ElementType::f32) return "the images are not both f32";
  return {};
}

Prepared prepare_winograd_forward(const Convolution& c, std::int64_t tile, ProductMaker maker) {
  return prepare_side(c, tile, maker, false);
}

Prepared prepare_winograd_input_gradient(const Convolution& c, std::int64_t tile, ProductMaker maker) {
  return prepare_side(c, tile, maker, true);
}

}  // namespace superstep::kernels
