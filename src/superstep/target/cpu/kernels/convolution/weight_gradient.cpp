// Weight gradients: for each tap a product of dy with the shifted x, summed over the columns of a row within
// the product and over rows by batch-reduction.
//
//   dw[kh, kw] (channels of one side) x (channels of the other) += sum over rows, columns of dy x^T
//
// The side whose channels fill vectors better lies along the contiguous dimension. Rows are taken in chunks
// that stay in the second-level cache while all taps and panels are done: some rows of a plane, or, where
// planes are small, whole planes of a volume. Products of bf16 pairs run along the columns: both operands of
// a chunk are rearranged in scratch first.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/base/integers.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/convolution/weight_gradient_tables.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/pair_packing.h"

namespace superstep::kernels {

namespace {

// Rows of the input, counted through its planes, that lie between the first and the last one that a chunk
// reads.
std::int64_t input_rows(const Convolution& c, const GradientTables& t) {
  const Window& w = c.window;
  const std::int64_t planes = (t.chunk_planes - 1) * w.stride_d + (w.depth - 1) * w.dilation_d;
  const std::int64_t rows = (t.chunk_rows - 1) * w.stride_h + (w.height - 1) * w.dilation_h + 1;
  return std::min(c.x.height, planes * c.x.rows() + rows);
}

std::size_t aligned(std::int64_t elements) {
  return static_cast<std::size_t>(round_up<std::int64_t>(elements * 2, 64));
}

class WeightGradient final : public Kernel {
 public:
  WeightGradient(KernelInfo info, const Convolution& c, GradientTables tables)
      : Kernel(std::move(info)), c_(c), t_(std::move(tables)), packers_(pair_packers()) {
    // Packing is done once for all products, and products of one-channel images share their sums.
    const bool apart = !t_.paired && c_.x.channels / c_.groups > 1;
    const auto products = static_cast<std::int64_t>(t_.calls.size()) * c_.groups;
    if (apart) info_.parts = std::clamp<std::int64_t>(products, 1, most_parts);
  }

  // Packed dy, packed x, and a row's room for transposing.
  static std::array<std::size_t, 3> scratch_parts(const Convolution& c, const GradientTables& t) {
    if (!t.paired) return {};
    return {aligned(t.chunk_planes * t.chunk_rows * t.dy.row_stride),
            aligned(input_rows(c, t) * t.x.row_stride), aligned(std::max(t.dy.row_stride, t.x.row_stride))};
  }

  void run(const Arguments& arguments) const override {
    for_each_chunk(c_.y, t_, [&](const Chunk& chunk) {
      const Sources sources = t_.paired ? pack(arguments, chunk) : in_place(arguments);
      for (std::int64_t group = 0; group < c_.groups; ++group)
        for (const GradientCall& call : t_.calls)
          run_call(call, chunk, group, sources, static_cast<float*>(arguments.outputs[0]));
    });
  }

  // Some of the products.
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    if (info_.parts == 1) return run(arguments);
    const auto calls = static_cast<std::int64_t>(t_.calls.size());
    const PartRange range = part_range(calls * c_.groups, part, info_.parts);
    for_each_chunk(c_.y, t_, [&](const Chunk& chunk) {
      for (std::int64_t i = range.begin; i < range.end; ++i)
        run_call(t_.calls[static_cast<std::size_t>(i % calls)], chunk, i / calls, in_place(arguments),
                 static_cast<float*>(arguments.outputs[0]));
    });
  }

 private:
  // The operands of a chunk and the rows of the images that they start with.
  struct Sources {
    const std::byte *x, *dy;
    std::int64_t first_x_row, first_dy_row;
  };

  static Sources in_place(const Arguments& arguments) {
    return {static_cast<const std::byte*>(arguments.inputs[0]),
            static_cast<const std::byte*>(arguments.inputs[1]), 0, 0};
  }

  // Of all planes, counted through: several planes are taken whole, so that these are consecutive.
  TapRange rows_of_chunk(const Chunk& chunk) const {
    return {chunk.planes.begin * c_.y.rows() + chunk.rows.begin,
            (chunk.planes.end - 1) * c_.y.rows() + chunk.rows.end};
  }

  void pack_rows(const void* from, const Image& image, const Image& packed, bool transposed, TapRange rows,
                 bf16* to, bf16* room) const {
    for (std::int64_t row = rows.begin; row < rows.end; ++row, to += packed.row_stride) {
      const PairPacking packing{static_cast<const bf16*>(from) + row * image.row_stride, image.column_stride,
                                image.columns(), image.channels};
      if (transposed)
        packers_.transpose(packing, to, room);
      else
        packers_.interleave(packing, to);
    }
  }

  // The first and last row of the input that a chunk reads, counted through its planes.
  TapRange rows_read(const Chunk& chunk) const {
    const Window& w = c_.window;
    const auto span = [](TapRange outputs, std::int64_t stride, std::int64_t pad, std::int64_t reach,
                         std::int64_t input) -> TapRange {
      const std::int64_t first = std::clamp<std::int64_t>(outputs.begin * stride - pad, 0, input);
      return {first, std::clamp((outputs.end - 1) * stride - pad + reach + 1, first, input)};
    };
    const TapRange planes =
        span(chunk.planes, w.stride_d, w.pad_front, (w.depth - 1) * w.dilation_d, c_.x.planes);
    const TapRange rows = span(chunk.rows, w.stride_h, w.pad_top, (w.height - 1) * w.dilation_h, c_.x.rows());
    if (planes.begin == planes.end || rows.begin == rows.end) return {0, 0};
    return {planes.begin * c_.x.rows() + rows.begin, (planes.end - 1) * c_.x.rows() + rows.end};
  }

  Sources pack(const Arguments& arguments, const Chunk& chunk) const {
    const auto parts = scratch_parts(c_, t_);
    auto* dy = static_cast<std::byte*>(arguments.scratch);
    auto* x = dy + parts[0];
    auto* room = reinterpret_cast<bf16*>(x + parts[1]);
    const TapRange x_rows = rows_read(chunk), dy_rows = rows_of_chunk(chunk);
    pack_rows(arguments.inputs[1], c_.y, t_.dy, !t_.out_inner, dy_rows, reinterpret_cast<bf16*>(dy), room);
    pack_rows(arguments.inputs[0], c_.x, t_.x, t_.out_inner, x_rows, reinterpret_cast<bf16*>(x), room);
    return {x, dy, x_rows.begin, dy_rows.begin};
  }

  static TapRange common(TapRange a, TapRange b) {
    return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
  }

  void run_call(const GradientCall& call, const Chunk& chunk, std::int64_t group, const Sources& sources,
                float* dw) const {
    const Window& w = c_.window;
    const TapRange planes = common(chunk.planes, call.planes), rows = common(chunk.rows, call.rows);
    if (planes.begin >= planes.end || rows.begin >= rows.end) return;
    const auto size = static_cast<std::int64_t>(size_in_bytes(c_.x.type));
    const std::int64_t in = c_.x.channels / c_.groups, out = c_.y.channels / c_.groups;
    const std::int64_t dy_row = planes.begin * c_.y.rows() + rows.begin - sources.first_dy_row;
    const std::int64_t x_plane = planes.begin * w.stride_d + call.tap_d * w.dilation_d - w.pad_front;
    const std::int64_t x_row = x_plane * c_.x.rows() + rows.begin * w.stride_h + call.tap_h * w.dilation_h -
                               w.pad_top - sources.first_x_row;
    const std::byte* dy = sources.dy + (dy_row * t_.dy.row_stride + call.dy_start + group * out) * size;
    const std::byte* x = sources.x + (x_row * t_.x.row_stride + call.x_start + group * in) * size;
    const OffsetTable& offsets = t_.offsets[call.offsets];
    float* result = dw + group * t_.group_elements + call.dw_start;
    const auto count =
        static_cast<std::uint64_t>((planes.end - planes.begin) * (rows.end - rows.begin) * call.positions);
    if (t_.out_inner)
      t_.products[call.product](dy, x, result, count, offsets.dy.data(), offsets.x.data());
    else
      t_.products[call.product](x, dy, result, count, offsets.x.data(), offsets.dy.data());
  }

  Convolution c_;
  GradientTables t_;
  PairPackers packers_;
};

KernelInfo describe(const Convolution& c, const GradientTables& t, ProductMaker maker) {
  KernelInfo info;
  info.name =
      fmt::format("weight gradient, {}, {} along vectors{}", name_of(maker), t.out_inner ? "out" : "in",
                  t.chunk_planes * t.chunk_rows < c.y.height
                      ? fmt::format(", chunks of {} rows", t.chunk_planes * t.chunk_rows)
                      : "");
  info.flops = 2 * multiply_adds(c);
  info.bytes = static_cast<double>((c.x.element_count() + c.y.element_count()) *
                                   static_cast<std::int64_t>(size_in_bytes(c.x.type))) +
               8 * static_cast<double>(t.group_elements * c.groups);
  for (std::size_t part : WeightGradient::scratch_parts(c, t)) info.scratch_bytes += part;
  info.inputs = 2;
  info.outputs = 1;
  info.weights = t.out_inner ? WeightLayout::taps_in_out : WeightLayout::taps_out_in;
  info.arithmetic = multiplied_as(c.x.type);
  return info;
}

template <ProductMaker maker>
Prepared prepare_weight_gradient(const Convolution& c) {
  if (std::string fault = fault_of(c); !fault.empty()) return refuse(name_of(maker), fault);
  if (!c.epilogue.steps.empty()) return refuse(name_of(maker), "a weight gradient has no epilogue");
  if (c.x.type != c.y.type) return refuse(name_of(maker), "x and dy differ in type");
  auto tables = make_gradient_tables(c, maker);
  if (!tables) return refuse(name_of(maker), tables.error());
  KernelInfo info = describe(c, *tables, maker);
  return std::make_unique<WeightGradient>(std::move(info), c, std::move(*tables));
}

}  // namespace

extern constinit const Implementation<Convolution> libxsmm_weight_gradient{
    "libxsmm", prepare_weight_gradient<ProductMaker::libxsmm>};
extern constinit const Implementation<Convolution> portable_weight_gradient{
    "portable", prepare_weight_gradient<ProductMaker::portable>};

}  // namespace superstep::kernels
