// Weight gradients by Winograd's algorithm (winograd.h).
//
// Done in units of up to 64 input by 64 output channels, each of which transforms its own channels of x and
// dy: the sums of a unit, one matrix a pair of points, stay near the second-level cache through all blocks of
// tiles and are transformed back once, into the same layout that the direct gradient has.
#include <fmt/format.h>

#include "superstep/target/cpu/kernels/column_sum.h"
#include "superstep/target/cpu/kernels/winograd.h"
#include "superstep/target/cpu/kernels/winograd_grid.h"
#include "superstep/target/cpu/kernels/winograd_loops.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t block_bytes = 640 * 1024;  // of v and z
constexpr std::int64_t least_columns = 32;        // of a block: the sums are read and written once a block
constexpr std::int64_t chunk_width = 64;          // input channels of a unit

struct Blocking {
  std::int64_t columns, blocks;
  std::int64_t chunks, panels;
  std::int64_t v_stride, z_stride, sum_stride;  // floats between planes
};

Blocking blocking_of(const WinogradGrid& grid, const Convolution& c) {
  const std::int64_t in = std::min(chunk_width, c.x.channels), out = std::min(panel_width, c.y.channels);
  Blocking b{};
  const std::int64_t wanted = block_bytes / (grid.planes() * 4 * (in + out));
  b.columns = winograd_block_columns(grid, std::max(least_columns, wanted));
  b.blocks = (grid.count() + b.columns - 1) / b.columns;
  b.chunks = (c.x.channels + chunk_width - 1) / chunk_width;
  b.panels = (c.y.channels + panel_width - 1) / panel_width;
  b.v_stride = winograd_plane_stride(b.columns * in);
  b.z_stride = winograd_plane_stride(b.columns * out);
  b.sum_stride = winograd_plane_stride(in * out);
  return b;
}

// Some input and some output channels.
struct Unit {
  std::int64_t first_in, in, first_out, out;
};

// Products by full or last: chunk of input channels, panel, block; of the first block or a later one.
using Products = BatchReduceProduct[2][2][2][2];

class WinogradWeightGradient final : public Kernel {
 public:
  WinogradWeightGradient(KernelInfo info, const Convolution& c, const WinogradGrid& grid, const Blocking& b,
                         const Products& products)
      : Kernel(std::move(info)),
        c_(c),
        grid_(grid),
        b_(b),
        loops_(winograd_loops(grid.tile)),
        column_sum_(column_sum(c.y.type)) {
    std::copy_n(&products[0][0][0][0], 16, &products_[0][0][0][0]);
  }

  void run(const Arguments& arguments) const override {
    for (std::int64_t part = 0; part < info_.parts; ++part) run_part(arguments, part);
  }

  void run_part(const Arguments& arguments, std::int64_t part) const override {
    const std::int64_t units = b_.chunks * b_.panels, unit_parts = info_.parts - (c_.bias_gradient ? 1 : 0);
    if (part == unit_parts) return add_bias(arguments);
    const PartRange range = part_range(units, part, unit_parts);
    for (std::int64_t unit = range.begin; unit < range.end; ++unit) run_unit(arguments, unit_of(unit));
  }

 private:
  Unit unit_of(std::int64_t number) const {
    const std::int64_t in = number % b_.chunks * chunk_width, out = number / b_.chunks * panel_width;
    return {in, std::min(chunk_width, c_.x.channels - in), out, std::min(panel_width, c_.y.channels - out)};
  }

  void run_unit(const Arguments& arguments, const Unit& unit) const;
  void transform(WinogradLoop* loop, const Image& image, const void* data, std::int64_t first_channel,
                 std::int64_t channels, PartRange columns, float* planes, std::int64_t plane_stride) const;
  void multiply(const Unit& unit, PartRange columns, const float* v, const float* z, float* sums) const;
  void transform_back(const Unit& unit, float* sums, float* dw) const;

  void add_bias(const Arguments& arguments) const {
    for (std::int64_t row = 0; row < c_.y.height; ++row)
      column_sum_(static_cast<const float*>(arguments.inputs[1]) + row * c_.y.row_stride, c_.y.column_stride,
                  c_.y.columns(), c_.y.channels, static_cast<float*>(arguments.outputs[1]));
  }

  Convolution c_;
  WinogradGrid grid_;
  Blocking b_;
  Products products_;
  WinogradLoops loops_;
  ColumnSum* column_sum_;
};

// Tiles of x overlap by two positions and start in the padding; those of dy do neither.
void WinogradWeightGradient::transform(WinogradLoop* loop, const Image& image, const void* data,
                                       std::int64_t first_channel, std::int64_t channels, PartRange columns,
                                       float* planes, std::int64_t plane_stride) const {
  const bool is_x = loop == loops_.input;
  const std::int64_t size = grid_.tile + (is_x ? 2 : 0);
  const bool joined = image.column_stride == channels;
  const auto inside = [&](std::int64_t start, std::int64_t extent) {
    return WinogradRun::Range{std::max<std::int64_t>(0, -start), std::min(size, extent - start)};
  };
  grid_.for_each_piece(columns, [&](const WinogradGrid::Piece& piece) {
    const std::int64_t row = piece.row * grid_.tile - (is_x ? c_.window.pad_top : 0),
                       column = piece.column * grid_.tile - (is_x ? c_.window.pad_left : 0);
    const std::int64_t samples = piece.end - piece.begin;
    const float* square = static_cast<const float*>(data) + image.offset(row, column) +
                          piece.begin * image.column_stride + first_channel;
    loop({.square = const_cast<float*>(square),
          .row_stride = image.row_stride,
          .column_stride = image.batch * image.column_stride,
          .rows = inside(row, image.height),
          .columns = inside(column, image.width),
          .run_stride = image.column_stride,
          .planes = planes + (piece.first - columns.begin) * channels,
          .plane_stride = plane_stride,
          .plane_run_stride = channels,
          .runs = joined ? 1 : samples,
          .length = joined ? samples * channels : channels});
  });
}

void WinogradWeightGradient::multiply(const Unit& unit, PartRange columns, const float* v, const float* z,
                                      float* sums) const {
  const BatchReduceProduct& product = products_[unit.in < chunk_width][unit.out < panel_width]
                                               [columns.end - columns.begin < b_.columns][columns.begin > 0];
  for (std::int64_t plane = 0; plane < grid_.planes(); ++plane)
    product(z + plane * b_.z_stride, v + plane * b_.v_stride, sums + plane * b_.sum_stride);
}

void WinogradWeightGradient::transform_back(const Unit& unit, float* sums, float* dw) const {
  const std::int64_t tap = c_.x.channels * unit.out;  // elements of a tap of the panel
  loops_.filter_gradient({.square = dw + unit.first_out * c_.x.channels * 9 + unit.first_in * unit.out,
                          .row_stride = 3 * tap,
                          .column_stride = tap,
                          .rows = {0, 3},
                          .columns = {0, 3},
                          .run_stride = 0,
                          .planes = sums,
                          .plane_stride = b_.sum_stride,
                          .plane_run_stride = 0,
                          .runs = 1,
                          .length = unit.in * unit.out,
                          .accumulate = true});
}

void WinogradWeightGradient::run_unit(const Arguments& arguments, const Unit& unit) const {
  auto* v = static_cast<float*>(arguments.scratch);
  float* z = v + grid_.planes() * b_.v_stride;
  float* sums = z + grid_.planes() * b_.z_stride;
  for (std::int64_t first = 0; first < grid_.count(); first += b_.columns) {
    const PartRange columns{first, std::min(grid_.count(), first + b_.columns)};
    transform(loops_.input, c_.x, arguments.inputs[0], unit.first_in, unit.in, columns, v, b_.v_stride);
    transform(loops_.output_gradient, c_.y, arguments.inputs[1], unit.first_out, unit.out, columns, z,
              b_.z_stride);
    multiply(unit, columns, v, z, sums);
  }
  transform_back(unit, sums, static_cast<float*>(arguments.outputs[0]));
}

std::string make_products(const WinogradGrid& grid, const Blocking& b, const Convolution& c,
                          ProductMaker maker, Products& products) {
  const auto extent = [](std::int64_t total, std::int64_t width, bool last) {
    return last ? total % width : std::min(total, width);
  };
  for (int number = 0; number < 16; ++number) {
    const bool narrow_in = number & 8, narrow_out = number & 4, last_block = number & 2, later = number & 1;
    ProductShape shape;
    shape.m = extent(c.y.channels, panel_width, narrow_out);
    shape.n = extent(c.x.channels, chunk_width, narrow_in);
    shape.k = extent(grid.count(), b.columns, last_block);
    if (shape.m == 0 || shape.n == 0 || shape.k == 0) continue;
    shape.a_stride = shape.c_stride = shape.m;
    shape.b_k_stride = shape.n;
    shape.b_n_stride = 1;
    shape.accumulate = later;
    auto product = BatchReduceProduct::prepare(shape, maker);
    if (!product) return product.error();
    products[narrow_in][narrow_out][last_block][later] = *product;
  }
  return {};
}

KernelInfo describe(const Convolution& c, const WinogradGrid& grid, const Blocking& b) {
  const auto weights = static_cast<double>(9 * c.x.channels * c.y.channels);
  KernelInfo info;
  info.name =
      fmt::format("weight gradient, Winograd F({}x{}, 3x3), {} x {} blocks of {} columns{}", grid.tile,
                  grid.tile, b.chunks * b.panels, b.blocks, b.columns, c.bias_gradient ? " + bias" : "");
  info.flops = 2 * multiply_adds(c) + (c.bias_gradient ? static_cast<double>(c.y.element_count()) : 0);
  info.bytes = 4 * static_cast<double>(c.x.element_count() + c.y.element_count()) + 8 * weights;
  info.scratch_bytes =
      static_cast<std::size_t>(grid.planes() * (b.v_stride + b.z_stride + b.sum_stride)) * sizeof(float);
  info.inputs = 2;
  info.outputs = c.bias_gradient ? 2 : 1;
  info.parts = std::min(b.chunks * b.panels, most_parts) + (c.bias_gradient ? 1 : 0);
  info.weights = WeightLayout::taps_in_out;
  return info;
}

}  // namespace

Prepared prepare_winograd_weight_gradient(const Convolution& c, std::int64_t tile, ProductMaker maker) {
  if (std::string fault = winograd_fault(c); !fault.empty()) return refuse("winograd", fault);
  if (!c.epilogue.steps.empty()) return refuse("winograd", "a weight gradient has no epilogue");
  const WinogradGrid grid(tile, c.y);
  const Blocking blocking = blocking_of(grid, c);
  Products products;
  if (std::string reason = make_products(grid, blocking, c, maker, products); !reason.empty())
    return refuse("winograd", reason);
  return std::make_unique<WinogradWeightGradient>(describe(c, grid, blocking), c, grid, blocking, products);
}

}  // namespace superstep::kernels
