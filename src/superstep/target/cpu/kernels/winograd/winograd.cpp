#include "superstep/target/cpu/kernels/winograd/winograd.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "superstep/target/cpu/kernels/core/caches.h"
#include "superstep/target/cpu/kernels/core/epilogue_run.h"
#include "superstep/target/cpu/kernels/winograd/winograd_transform.h"
#include "superstep/target/cpu/kernels/winograd/winograd_weights.h"

namespace superstep::kernels {

namespace {

// Of v and m in the second-level cache.
std::int64_t block_bytes() { return second_level_cache() * 7 / 16; }
constexpr std::int64_t least_columns = 24;  // of a block: all weights are read once a block
constexpr std::int64_t enough_parts = 8;    // below it panels are parts too

// A convolution seen from its result; an input gradient is one of dy with the window turned round. Of volumes
// plane z of the result is a sum over planes z - pad_front to z - pad_front + depth - 1 of the source.
struct Side {
  Image result, source;
  std::int64_t depth, pad_front, pad_top, pad_left;
  bool flipped;
};

// A block is some columns of some neighbouring planes of the result: their products are one, since v has the
// same columns of all planes of the source that they read.
struct Blocking {
  std::int64_t columns;  // of a plane
  std::int64_t planes;   // of the result; they divide those that it has
  std::int64_t column_blocks, blocks, panels;
  std::int64_t v_stride, m_stride;  // elements between planes
  std::int64_t panel_groups;        // parts that a block is divided into
  ElementType products;             // of v and the weights
  std::int64_t v_bytes, m_bytes, staging_bytes;
};

Blocking blocking_of(const WinogradGrid& grid, const Side& side, ElementType products) {
  const std::int64_t in = side.source.channels, out = side.result.channels;
  const auto size = static_cast<std::int64_t>(size_in_bytes(products));
  Blocking b{};
  b.products = products;
  b.planes = winograd_block_planes(side.result.planes);
  b.panels = (out + panel_width - 1) / panel_width;
  const std::int64_t read = b.planes + side.depth - 1;  // planes
  const std::int64_t column_bytes =
      grid.planes() * (size * in * read + 4 * std::min(out, panel_width) * b.planes);
  // A large cache makes no block so long that most threads have none.
  const std::int64_t for_parts = grid.count() * (side.result.planes / b.planes) * b.panels / enough_parts;
  b.columns = winograd_block_columns(grid, std::max((least_columns + b.planes - 1) / b.planes,
                                                    std::min(block_bytes() / column_bytes, for_parts)));
  b.column_blocks = (grid.count() + b.columns - 1) / b.columns;
  b.blocks = b.column_blocks * (side.result.planes / b.planes);
  b.v_stride = winograd_plane_stride(read * b.columns * in, products);
  b.m_stride = winograd_plane_stride(b.planes * b.columns * std::min(out, panel_width));
  b.panel_groups =
      b.blocks >= enough_parts ? 1 : std::min(b.panels, (enough_parts + b.blocks - 1) / b.blocks);
  b.v_bytes = grid.planes() * b.v_stride * size;
  b.m_bytes = grid.planes() * b.m_stride * 4;
  if (side.result.type != ElementType::f32)
    b.staging_bytes = b.columns * grid.tile * grid.tile * std::min(out, panel_width) * 4;
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
        output_(winograd_square_loops(grid.tile).output) {
    const WinogradInputLoops input = winograd_input_loops(grid.tile);
    input_ = blocking.products == ElementType::bf16 ? input.to_bf16 : input.to_f32;
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

  // Where a run of neighbouring tiles of a row is transformed back to: the result itself, or, where that is
  // not f32, staging [row of the tiles][column][sample][channel].
  struct Place {
    float* first;
    std::int64_t row_stride, position_stride, sample_stride;
  };

  // Of one plane of the result.
  struct Part {
    std::int64_t first_row;  // of the plane, among those of the whole volume
    PartRange columns;
    std::int64_t panel;
  };

  void run_block(const Arguments& arguments, std::int64_t block, PartRange panels) const;
  void transform_source(const void* source, std::int64_t first_plane, PartRange columns, std::byte* v) const;
  void multiply(const std::byte* u, const std::byte* v, float* m, std::int64_t panel,
                std::int64_t columns) const;
  void transform_back(const Arguments& arguments, const Part& part, const float* m, float* staging) const;
  Place place_of(const Arguments& arguments, const Part& part, const Piece& piece, std::int64_t tiles,
                 float* staging) const;
  void transform_tile(const Piece& piece, const float* m, std::int64_t channels, const Place& place) const;
  void finish(const Arguments& arguments, const Part& part, const Piece& piece, std::int64_t tiles,
              const Place& place) const;
  std::int64_t panel_channels(std::int64_t panel) const {
    return std::min(panel_width, side_.result.channels - panel * panel_width);
  }
  bool staged() const { return side_.result.type != ElementType::f32; }

  WinogradGrid grid_;
  Side side_;
  Blocking b_;
  Products products_;
  EpilogueRunner epilogue_;
  bool accumulate_;
  WinogradLoop *input_, *output_;
};

// Sums over the planes of the source that one of the result reads: v has them behind each other.
void WinogradConvolution::multiply(const std::byte* u, const std::byte* v, float* m, std::int64_t panel,
                                   std::int64_t columns) const {
  const std::int64_t channels = panel_channels(panel), in = side_.source.channels;
  const auto size = static_cast<std::int64_t>(size_in_bytes(b_.products));
  const BatchReduceProduct& product = products_[channels < panel_width][columns < b_.columns];
  std::array<std::uint64_t, largest_winograd_depth> u_offsets{}, v_offsets{};
  for (std::int64_t tap = 0; tap < side_.depth; ++tap) {
    u_offsets[static_cast<std::size_t>(tap)] =
        static_cast<std::uint64_t>(tap * grid_.planes() * in * channels * size);
    v_offsets[static_cast<std::size_t>(tap)] = static_cast<std::uint64_t>(tap * columns * in * size);
  }
  for (std::int64_t point = 0; point < grid_.planes(); ++point)
    product(u + point * in * channels * size, v + point * b_.v_stride * size, m + point * b_.m_stride,
            static_cast<std::uint64_t>(side_.depth), u_offsets.data(), v_offsets.data());
}

WinogradConvolution::Place WinogradConvolution::place_of(const Arguments& arguments, const Part& part,
                                                         const Piece& piece, std::int64_t tiles,
                                                         float* staging) const {
  const Image& image = side_.result;
  if (!staged())
    return {static_cast<float*>(arguments.outputs[0]) +
                image.offset(part.first_row + piece.row * grid_.tile, piece.column * grid_.tile) +
                piece.begin * image.column_stride + part.panel * panel_width,
            image.row_stride, image.batch * image.column_stride, image.column_stride};
  const std::int64_t channels = panel_channels(part.panel), position = (piece.end - piece.begin) * channels;
  return {staging, tiles * grid_.tile * position, position, channels};
}

void WinogradConvolution::transform_tile(const Piece& piece, const float* m, std::int64_t channels,
                                         const Place& place) const {
  const Image& image = side_.result;
  const std::int64_t row = piece.row * grid_.tile, column = piece.column * grid_.tile;
  const std::int64_t samples = piece.end - piece.begin;
  const bool joined = place.sample_stride == channels;
  output_({.square = place.first,
           .row_stride = place.row_stride,
           .column_stride = place.position_stride,
           .rows = {0, std::min(grid_.tile, image.rows() - row)},
           .columns = {0, std::min(grid_.tile, image.width - column)},
           .run_stride = place.sample_stride,
           .planes = const_cast<float*>(m),
           .plane_stride = b_.m_stride,
           .plane_run_stride = channels,
           .runs = joined ? 1 : samples,
           .length = joined ? samples * channels : channels,
           .accumulate = accumulate_});
}

// The epilogue over all rows of `tiles` neighbouring tiles from the piece on: row by row when their samples
// are all there, else position by position.
void WinogradConvolution::finish(const Arguments& arguments, const Part& part, const Piece& piece,
                                 std::int64_t tiles, const Place& place) const {
  if (epilogue_.empty() && !staged()) return;
  const Image& image = side_.result;
  const std::int64_t channels = panel_channels(part.panel), samples = piece.end - piece.begin;
  const std::int64_t top = piece.row * grid_.tile, left = piece.column * grid_.tile;
  const std::int64_t height = std::min(image.rows() - top, grid_.tile),
                     width = std::min(image.width - left, tiles * grid_.tile);
  const std::int64_t step = samples == grid_.batch ? width : 1;
  auto* result = static_cast<std::byte*>(arguments.outputs[0]);
  for (std::int64_t row = 0; row < height; ++row)
    for (std::int64_t at = 0; at < width; at += step) {
      const std::int64_t column = (left + at) * image.batch + piece.begin, channel = part.panel * panel_width;
      const std::int64_t at_row = part.first_row + top + row;
      const std::int64_t offset = at_row * image.row_stride + column * image.column_stride + channel;
      epilogue_.apply({place.first + row * place.row_stride + at * place.position_stride, place.sample_stride,
                       result + offset * static_cast<std::int64_t>(size_in_bytes(image.type)), image.type,
                       image.column_stride, step * samples, channels, nullptr, 0},
                      {at_row, column, channel}, arguments.inputs.data() + 2, arguments.outputs.data() + 1);
    }
}

void WinogradConvolution::transform_back(const Arguments& arguments, const Part& part, const float* m,
                                         float* staging) const {
  const std::int64_t channels = panel_channels(part.panel);
  grid_.for_each_run(part.columns, [&](const Piece& first, std::int64_t tiles) {
    const Place run = place_of(arguments, part, first, tiles, staging);
    Piece piece = first;
    Place place = run;
    for (std::int64_t tile = 0; tile < tiles; ++tile, ++piece.column) {
      transform_tile(piece, m + (first.first - part.columns.begin + tile * grid_.batch) * channels, channels,
                     place);
      place.first += grid_.tile * place.position_stride;
    }
    finish(arguments, part, first, tiles, run);
  });
}

// All planes of the source that a block reads, zeros where it ends.
void WinogradConvolution::transform_source(const void* source, std::int64_t first_plane, PartRange columns,
                                           std::byte* v) const {
  const Image& image = side_.source;
  const auto size = static_cast<std::int64_t>(size_in_bytes(b_.products));
  const std::int64_t row = (columns.end - columns.begin) * image.channels * size;
  Image plane = image;
  plane.height = image.rows();
  plane.planes = 1;
  for (std::int64_t k = 0; k < b_.planes + side_.depth - 1; ++k) {
    const std::int64_t z = first_plane + k - side_.pad_front;
    if (z < 0 || z >= image.planes) {
      for (std::int64_t point = 0; point < grid_.planes(); ++point)
        std::memset(v + point * b_.v_stride * size + k * row, 0, static_cast<std::size_t>(row));
      continue;
    }
    const auto* first =
        static_cast<const std::byte*>(source) +
        z * plane.height * image.row_stride * static_cast<std::int64_t>(size_in_bytes(image.type));
    transform_tiles(input_, grid_,
                    {plane, first, 0, image.channels, grid_.tile + 2, side_.pad_top, side_.pad_left}, columns,
                    {v + k * row, b_.v_stride, b_.products});
  }
}

void WinogradConvolution::run_block(const Arguments& arguments, std::int64_t block, PartRange panels) const {
  const std::int64_t first_plane = block / b_.column_blocks * b_.planes,
                     first = block % b_.column_blocks * b_.columns;
  const PartRange columns{first, std::min(grid_.count(), first + b_.columns)};
  const std::int64_t count = columns.end - columns.begin;
  auto* v = static_cast<std::byte*>(arguments.scratch);
  auto* m = reinterpret_cast<float*>(v + b_.v_bytes);
  auto* staging = reinterpret_cast<float*>(v + b_.v_bytes + b_.m_bytes);
  transform_source(arguments.inputs[0], first_plane, columns, v);
  const std::int64_t panel_bytes = panel_width * side_.source.channels * side_.depth * grid_.planes() *
                                   static_cast<std::int64_t>(size_in_bytes(b_.products));
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    multiply(static_cast<const std::byte*>(arguments.inputs[1]) + panel * panel_bytes, v, m, panel, count);
    for (std::int64_t k = 0; k < b_.planes; ++k)
      transform_back(arguments, {(first_plane + k) * side_.result.rows(), columns, panel},
                     m + k * count * panel_channels(panel), staging);
  }
}

Side side_of(const Convolution& c, bool flipped) {
  const Window& w = c.window;
  return flipped ? Side{c.x, c.y, w.depth, w.depth - 1 - w.pad_front, 2 - w.pad_top, 2 - w.pad_left, true}
                 : Side{c.y, c.x, w.depth, w.pad_front, w.pad_top, w.pad_left, false};
}

std::string make_products(const WinogradGrid& grid, const Side& side, const Blocking& b, ProductMaker maker,
                          Products& products) {
  const std::int64_t out = side.result.channels, in = side.source.channels;
  for (int narrow = 0; narrow < 2; ++narrow)
    for (int last = 0; last < 2; ++last) {
      ProductShape shape;
      shape.m = narrow ? out % panel_width : std::min(out, panel_width);
      shape.n = b.planes * (last ? grid.count() % b.columns : std::min(b.columns, grid.count()));
      if (shape.m == 0 || shape.n == 0) continue;
      shape.k = shape.b_n_stride = in;
      shape.type = b.products;
      shape.pairs = b.products == ElementType::bf16;
      shape.a_stride = shape.c_stride = shape.m;
      auto product = BatchReduceProduct::prepare(shape, maker);
      if (!product) return product.error();
      products[narrow][last] = *product;
    }
  return {};
}

KernelInfo describe(const Convolution& c, const WinogradGrid& grid, const Side& side, const Blocking& b,
                    const EpilogueRunner& epilogue) {
  const auto weights = static_cast<double>(side.depth * grid.planes() * c.x.channels * c.y.channels);
  const auto results = static_cast<double>(side.result.element_count());
  KernelInfo info;
  info.name =
      fmt::format("{}, {}, {} blocks of {} columns{}{}", side.flipped ? "input gradient" : "convolution",
                  name_of(WinogradForm{grid.tile, b.products}, side.source.type), b.blocks, b.columns,
                  b.planes == 1 ? "" : fmt::format(" of {} planes", b.planes),
                  c.epilogue.steps.empty() ? "" : " + " + to_string(c.epilogue));
  info.flops = 2 * multiply_adds(c);
  const auto size = [](ElementType type) { return static_cast<double>(size_in_bytes(type)); };
  info.bytes = size(side.source.type) * static_cast<double>(side.source.element_count()) +
               size(b.products) * weights + size(side.result.type) * results * (c.accumulate ? 2 : 1) +
               results * epilogue.bytes_per_element();
  info.inputs = 2 + epilogue.inputs();
  info.outputs = 1 + epilogue.outputs();
  info.scratch_bytes = static_cast<std::size_t>(b.v_bytes + b.m_bytes + b.staging_bytes);
  info.arithmetic = b.products;
  info.parts = std::min(b.blocks, most_parts) * b.panel_groups;
  info.weights = winograd_weights(grid.tile, side.flipped);
  return info;
}

Prepared prepare_side(const Convolution& c, WinogradForm form, ProductMaker maker, bool flipped) {
  if (std::string fault =
          winograd_fault(c, flipped ? ConvolutionPass::input_gradient : ConvolutionPass::forward);
      !fault.empty())
    return refuse("winograd", fault);
  const Side side = side_of(c, flipped);
  if (std::string fault = winograd_fault(form, side.source.type); !fault.empty())
    return refuse("winograd", fault);
  if (form.products == ElementType::bf16 && side.source.channels % 2 != 0)
    return refuse("winograd", "products of pairs need an even number of channels");
  if (c.accumulate && side.result.type != ElementType::f32)
    return refuse("winograd", "only an f32 result can be added to; the epilogue's `add` reads bf16");
  const WinogradGrid grid(form.tile, side.result);
  const Blocking blocking = blocking_of(grid, side, form.products);
  auto epilogue = EpilogueRunner::prepare(c.epilogue, side.result);
  if (!epilogue) return refuse("winograd", epilogue.error());
  Products products;
  if (std::string reason = make_products(grid, side, blocking, maker, products); !reason.empty())
    return refuse("winograd", reason);
  return std::make_unique<WinogradConvolution>(describe(c, grid, side, blocking, *epilogue), grid, side,
                                               blocking, products, *epilogue, c.accumulate);
}

}  // namespace

Prepared prepare_winograd_forward(const Convolution& c, WinogradForm form, ProductMaker maker) {
  return prepare_side(c, form, maker, false);
}

Prepared prepare_winograd_input_gradient(const Convolution& c, WinogradForm form, ProductMaker maker) {
  return prepare_side(c, form, maker, true);
}

}  // namespace superstep::kernels
