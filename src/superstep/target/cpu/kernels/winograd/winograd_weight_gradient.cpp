// Weight gradients by Winograd's algorithm (winograd.h).
//
// Done in units of up to 64 input by 64 output channels, each of which transforms its own channels of x and
// dy: the sums of a unit, one matrix a pair of points, stay near the second-level cache through all blocks of
// tiles and are transformed back once, into the same layout that the direct gradient has. Products run along
// the tiles: in bf16 the values of two neighbouring columns lie side by side, in both factors.
#include <fmt/format.h>

#include "superstep/target/cpu/kernels/core/caches.h"
#include "superstep/target/cpu/kernels/winograd/winograd.h"
#include "superstep/target/cpu/kernels/winograd/winograd_transform.h"

namespace superstep::kernels {

namespace {

// Of v and z.
std::int64_t block_bytes() { return second_level_cache() * 5 / 8; }
constexpr std::int64_t least_columns = 32;  // of a block: the sums are read and written once a block
constexpr std::int64_t chunk_width = 64;    // input channels of a unit

struct Blocking {
  std::int64_t columns, blocks;
  std::int64_t chunks, panels;
  std::int64_t v_stride, z_stride, sum_stride;  // elements between planes
  ElementType products;                         // of v and z
  std::int64_t size;                            // bytes of one of their elements

  bool pairs() const { return products == ElementType::bf16; }
  // Along which products run: pairs are padded.
  std::int64_t depth(std::int64_t of_columns) const {
    return pairs() ? (of_columns + 1) / 2 * 2 : of_columns;
  }
};

Blocking blocking_of(const WinogradGrid& grid, const Convolution& c, ElementType products) {
  const std::int64_t in = std::min(chunk_width, c.x.channels), out = std::min(panel_width, c.y.channels);
  Blocking b{};
  b.products = products;
  b.size = static_cast<std::int64_t>(size_in_bytes(products));
  const std::int64_t wanted = block_bytes() / (grid.planes() * b.size * (in + out));
  b.columns = winograd_block_columns(grid, std::max(least_columns, wanted));
  b.blocks = (grid.count() + b.columns - 1) / b.columns;
  b.chunks = (c.x.channels + chunk_width - 1) / chunk_width;
  b.panels = (c.y.channels + panel_width - 1) / panel_width;
  b.v_stride = winograd_plane_stride(b.depth(b.columns) * in, products);
  b.z_stride = winograd_plane_stride(b.depth(b.columns) * out, products);
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
        back_(winograd_square_loops(grid.tile).filter_gradient) {
    const WinogradInputLoops input = winograd_input_loops(grid.tile);
    const WinogradOtherLoops other = winograd_other_loops(grid.tile);
    input_ = b.pairs() ? input.to_pairs : input.to_f32;
    output_gradient_ = b.pairs() ? other.output_gradient_to_pairs : other.output_gradient;
    std::copy_n(&products[0][0][0][0], 16, &products_[0][0][0][0]);
  }

  void run(const Arguments& arguments) const override {
    for (std::int64_t part = 0; part < info_.parts; ++part) run_part(arguments, part);
  }

  void run_part(const Arguments& arguments, std::int64_t part) const override {
    const PartRange range = part_range(b_.chunks * b_.panels, part, info_.parts);
    for (std::int64_t unit = range.begin; unit < range.end; ++unit) run_unit(arguments, unit_of(unit));
  }

 private:
  Unit unit_of(std::int64_t number) const {
    const std::int64_t in = number % b_.chunks * chunk_width, out = number / b_.chunks * panel_width;
    return {in, std::min(chunk_width, c_.x.channels - in), out, std::min(panel_width, c_.y.channels - out)};
  }

  void run_unit(const Arguments& arguments, const Unit& unit) const;
  void multiply(const Unit& unit, PartRange columns, const std::byte* v, const std::byte* z,
                float* sums) const;
  void transform_back(const Unit& unit, float* sums, float* dw) const;

  Convolution c_;
  WinogradGrid grid_;
  Blocking b_;
  Products products_;
  WinogradLoop *input_, *output_gradient_, *back_;
};

void WinogradWeightGradient::multiply(const Unit& unit, PartRange columns, const std::byte* v,
                                      const std::byte* z, float* sums) const {
  const BatchReduceProduct& product = products_[unit.in < chunk_width][unit.out < panel_width]
                                               [columns.end - columns.begin < b_.columns][columns.begin > 0];
  for (std::int64_t plane = 0; plane < grid_.planes(); ++plane)
    product(z + plane * b_.z_stride * b_.size, v + plane * b_.v_stride * b_.size,
            sums + plane * b_.sum_stride);
}

void WinogradWeightGradient::transform_back(const Unit& unit, float* sums, float* dw) const {
  const std::int64_t tap = c_.x.channels * unit.out;  // elements of a tap of the panel
  back_({.square = dw + unit.first_out * c_.x.channels * 9 + unit.first_in * unit.out,
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

// Tiles of x overlap by two positions and start in the padding; those of dy do neither.
void WinogradWeightGradient::run_unit(const Arguments& arguments, const Unit& unit) const {
  auto* v = static_cast<std::byte*>(arguments.scratch);
  std::byte* z = v + grid_.planes() * b_.v_stride * b_.size;
  auto* sums = reinterpret_cast<float*>(z + grid_.planes() * b_.z_stride * b_.size);
  const WinogradSource x{c_.x,           arguments.inputs[0], unit.first_in,     unit.in,
                         grid_.tile + 2, c_.window.pad_top,   c_.window.pad_left};
  const WinogradSource dy{c_.y, arguments.inputs[1], unit.first_out, unit.out, grid_.tile};
  for (std::int64_t first = 0; first < grid_.count(); first += b_.columns) {
    const PartRange columns{first, std::min(grid_.count(), first + b_.columns)};
    transform_tiles(input_, grid_, x, columns, {v, b_.v_stride, b_.products, b_.pairs()});
    transform_tiles(output_gradient_, grid_, dy, columns, {z, b_.z_stride, b_.products, b_.pairs()});
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
    shape.k = b.depth(extent(grid.count(), b.columns, last_block));
    if (shape.m == 0 || shape.n == 0 || shape.k == 0) continue;
    shape.a_stride = shape.c_stride = shape.m;
    shape.b_k_stride = shape.n;
    shape.b_n_stride = 1;
    shape.accumulate = later;
    shape.type = b.products;
    shape.pairs = shape.b_pairs = b.pairs();
    auto product = BatchReduceProduct::prepare(shape, b.pairs() ? ProductMaker::portable : maker);
    if (!product) return product.error();
    products[narrow_in][narrow_out][last_block][later] = *product;
  }
  return {};
}

KernelInfo describe(const Convolution& c, const WinogradGrid& grid, const Blocking& b) {
  const auto weights = static_cast<double>(9 * c.x.channels * c.y.channels);
  KernelInfo info;
  info.name = fmt::format("weight gradient, {}, {} x {} blocks of {} columns",
                          name_of(WinogradForm{grid.tile, b.products}, c.x.type), b.chunks * b.panels,
                          b.blocks, b.columns);
  info.flops = 2 * multiply_adds(c);
  const auto bytes_of = [](const Image& image) {
    return static_cast<double>(image.element_count()) * static_cast<double>(size_in_bytes(image.type));
  };
  info.bytes = bytes_of(c.x) + bytes_of(c.y) + 8 * weights;
  info.scratch_bytes =
      static_cast<std::size_t>(grid.planes() * (b.size * (b.v_stride + b.z_stride) + 4 * b.sum_stride));
  info.arithmetic = b.products;
  info.inputs = 2;
  info.outputs = 1;
  info.parts = std::min(b.chunks * b.panels, most_parts);
  info.weights = WeightLayout::taps_in_out;
  return info;
}

}  // namespace

Prepared prepare_winograd_weight_gradient(const Convolution& c, WinogradForm form, ProductMaker maker) {
  if (std::string fault = winograd_fault(c, ConvolutionPass::weight_gradient); !fault.empty())
    return refuse("winograd", fault);
  for (const Image* image : {&c.x, &c.y})
    if (std::string fault = winograd_fault(form, image->type); !fault.empty())
      return refuse("winograd", fault);
  if (!c.epilogue.steps.empty()) return refuse("winograd", "a weight gradient has no epilogue");
  const WinogradGrid grid(form.tile, c.y);
  const Blocking blocking = blocking_of(grid, c, form.products);
  Products products;
  if (std::string reason = make_products(grid, blocking, c, maker, products); !reason.empty())
    return refuse("winograd", reason);
  return std::make_unique<WinogradWeightGradient>(describe(c, grid, blocking), c, grid, blocking, products);
}

}  // namespace superstep::kernels
