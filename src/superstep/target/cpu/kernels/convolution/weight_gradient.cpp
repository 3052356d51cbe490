// Weight gradients: for each tap a product of dy with the shifted x, summed over the columns of a row within
// the product and over rows by batch-reduction.
//
//   dw[kh, kw] (channels of one side) x (channels of the other) += sum over rows, columns of dy x^T
//
// The side whose channels fill vectors better lies along the contiguous dimension. Rows are taken in chunks
// that stay in the second-level cache while all taps and panels are done. Products of bf16 pairs run along
// the columns: both operands of a chunk are rearranged in scratch first.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "superstep/base/integers.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"
#include "superstep/target/cpu/kernels/product/pair_packing.h"
#include "superstep/target/cpu/kernels/rows/column_sum.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t chunk_bytes = 256 * 1024;  // of dy and x in the second-level cache
constexpr std::int64_t least_columns = 256;       // of a chunk: dw is read and written once a chunk

// One batch-reduce product: tap by panel.
struct GradientCall {
  std::size_t product, offsets;  // offsets: which table of positions
  std::int64_t tap_h;
  std::int64_t positions;          // entries a row takes in the table
  std::int64_t dy_start, x_start;  // elements, in row 0 of the window
  std::int64_t dw_start;           // elements, within the group
  TapRange rows;                   // output rows the tap reaches
};

// Offsets of the operands for consecutive (row, position): bytes.
struct OffsetTable {
  std::vector<std::uint64_t> dy, x;
};

struct GradientTables {
  bool out_inner;  // dw's contiguous dimension is the output channel
  bool paired;     // bf16 pairs: the operands are packed, row by row, into the images below
  Image dy, x;     // as the products see them
  std::vector<GradientCall> calls;
  std::vector<BatchReduceProduct> products;
  std::vector<OffsetTable> offsets;
  std::int64_t chunk_rows = 1;
  std::int64_t group_elements = 0;  // of dw
};

class GradientTableBuilder {
 public:
  GradientTableBuilder(const Convolution& c, ProductMaker maker)
      : c_(c),
        maker_(maker),
        in_(c.x.channels / c.groups),
        out_(c.y.channels / c.groups),
        // Neighbouring positions form one run of evenly spaced columns.
        joined_(c.window.stride_w == 1 || c.x.batch == 1) {}

  std::expected<GradientTables, std::string> build();

 private:
  // With one input channel the taps of a window row stand in for channels: they are evenly spaced in x.
  bool one_channel() const {
    return in_ == 1 && c_.groups == 1 && joined_ && c_.x.column_stride == 1 && !paired();
  }
  bool paired() const { return maker_ == ProductMaker::libxsmm && c_.x.type == ElementType::bf16; }
  void choose_side();
  void choose_images();
  void choose_chunk();
  void add_tap(std::int64_t kh, std::int64_t first_kw, std::int64_t taps, TapRange columns);
  void add_row_of_taps(std::int64_t kh);
  void add_panel(GradientCall call, std::int64_t first, std::int64_t columns, std::int64_t taps,
                 std::int64_t tap);
  ProductShape shape_of(std::int64_t panel, std::int64_t columns, std::int64_t taps) const;
  std::size_t product_for(const ProductShape& shape);
  std::size_t table_for(std::int64_t positions);

  const Convolution& c_;
  ProductMaker maker_;
  std::int64_t in_, out_;
  bool joined_;
  GradientTables t_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::size_t> made_;
  std::map<std::int64_t, std::size_t> tables_;
  std::string refusal_;
};

std::int64_t padded(std::int64_t channels) { return (channels + 15) / 16 * 16; }

void GradientTableBuilder::choose_side() {
  t_.out_inner = one_channel() || padded(out_) * in_ <= padded(in_) * out_;
  t_.group_elements = in_ * out_ * c_.window.height * c_.window.width;
}

// Packed, the operand along the vectors keeps its shape (pairs of columns take turns with pairs of channels);
// the other one is transposed: its columns become contiguous.
void GradientTableBuilder::choose_images() {
  t_.paired = paired();
  t_.dy = c_.y;
  t_.x = c_.x;
  if (!t_.paired) return;
  const auto packed = [](Image image, bool transposed) {
    image.row_stride = image.columns() * image.channels;
    image.column_stride = transposed ? 1 : image.channels;
    return image;
  };
  t_.dy = packed(c_.y, !t_.out_inner);
  t_.x = packed(c_.x, t_.out_inner);
}

void GradientTableBuilder::choose_chunk() {
  const auto size = static_cast<std::int64_t>(size_in_bytes(c_.x.type));
  const std::int64_t row = size * (c_.y.columns() * out_ + c_.window.stride_h * c_.x.columns() * in_);
  const std::int64_t least = (least_columns + c_.y.columns() - 1) / c_.y.columns();
  t_.chunk_rows = std::clamp<std::int64_t>(std::max(chunk_bytes / row, least), 1, c_.y.height);
}

ProductShape GradientTableBuilder::shape_of(std::int64_t panel, std::int64_t columns,
                                            std::int64_t taps) const {
  const std::int64_t step = joined_ ? c_.window.stride_w : 1;
  const std::int64_t dy_stride = t_.dy.column_stride, x_stride = t_.x.column_stride * step;
  ProductShape shape;
  shape.m = panel;
  shape.k = columns;
  shape.c_stride = panel;
  shape.accumulate = true;
  shape.type = c_.x.type;
  shape.pairs = t_.paired;
  shape.a_stride = t_.out_inner ? dy_stride : x_stride;
  if (one_channel()) {
    shape.n = taps;
    shape.b_k_stride = x_stride;
    shape.b_n_stride = c_.window.dilation_w * c_.x.batch * c_.x.column_stride;
    return shape;
  }
  shape.n = t_.out_inner ? in_ : out_;
  shape.b_k_stride = t_.out_inner ? x_stride : dy_stride;
  shape.b_n_stride = t_.paired ? (t_.out_inner ? c_.x : c_.y).columns() : 1;
  return shape;
}

std::size_t GradientTableBuilder::product_for(const ProductShape& s) {
  const auto key = std::tuple(s.m, s.n, s.k);
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  auto product = BatchReduceProduct::prepare(s, maker_);
  if (!product) {
    refusal_ = product.error();
    return 0;
  }
  t_.products.push_back(*product);
  return made_[key] = t_.products.size() - 1;
}

std::size_t GradientTableBuilder::table_for(std::int64_t positions) {
  if (const auto found = tables_.find(positions); found != tables_.end()) return found->second;
  OffsetTable table;
  const auto size = static_cast<std::int64_t>(size_in_bytes(c_.x.type));
  for (std::int64_t row = 0; row < t_.chunk_rows; ++row)
    for (std::int64_t w = 0; w < positions; ++w) {
      table.dy.push_back(static_cast<std::uint64_t>(t_.dy.offset(row, w) * size));
      table.x.push_back(
          static_cast<std::uint64_t>(t_.x.offset(row * c_.window.stride_h, w * c_.window.stride_w) * size));
    }
  t_.offsets.push_back(std::move(table));
  return tables_[positions] = t_.offsets.size() - 1;
}

void GradientTableBuilder::add_panel(GradientCall call, std::int64_t first, std::int64_t columns,
                                     std::int64_t taps, std::int64_t tap) {
  const std::int64_t inner = t_.out_inner ? out_ : in_, depth = t_.out_inner ? in_ : out_;
  const std::int64_t panel = std::min(panel_width, inner - first);
  (t_.out_inner ? call.dy_start : call.x_start) += t_.paired ? 2 * first : first;
  call.dw_start = first * depth * c_.window.height * c_.window.width + tap * depth * panel;
  call.product = product_for(shape_of(panel, columns, taps));
  t_.calls.push_back(call);
}

// `taps` neighbouring taps (1 but for one-channel images) over a range of output columns that all reach.
void GradientTableBuilder::add_tap(std::int64_t kh, std::int64_t first_kw, std::int64_t taps,
                                   TapRange range) {
  const Window& w = c_.window;
  GradientCall call{};
  call.rows = valid_outputs(kh, w.stride_h, w.dilation_h, w.pad_top, c_.x.height, c_.y.height);
  if (call.rows.begin == call.rows.end || range.begin == range.end) return;
  const std::int64_t positions = range.end - range.begin;
  call.positions = joined_ ? 1 : positions;
  call.offsets = table_for(call.positions);
  call.tap_h = kh;
  call.dy_start = t_.dy.offset(0, range.begin);
  call.x_start = t_.x.offset(0, range.begin * w.stride_w + first_kw * w.dilation_w - w.pad_left);
  const std::int64_t columns = joined_ ? positions * c_.y.batch : c_.y.batch;
  const std::int64_t inner = t_.out_inner ? out_ : in_;
  for (std::int64_t first = 0; first < inner; first += panel_width)
    add_panel(call, first, columns, taps, kh * w.width + first_kw);
}

// One input channel: runs of output columns that reach the same taps.
void GradientTableBuilder::add_row_of_taps(std::int64_t kh) {
  const Window& w = c_.window;
  const auto taps_at = [&](std::int64_t o) {
    return valid_taps(o, w.width, w.stride_w, w.dilation_w, w.pad_left, c_.x.width);
  };
  for (std::int64_t begin = 0, end = 0; begin < c_.y.width; begin = end) {
    const TapRange taps = taps_at(begin);
    for (end = begin + 1; end < c_.y.width && taps_at(end) == taps; ++end) {
    }
    if (taps.begin < taps.end) add_tap(kh, taps.begin, taps.end - taps.begin, {begin, end});
  }
}

std::expected<GradientTables, std::string> GradientTableBuilder::build() {
  const Window& w = c_.window;
  choose_side();
  choose_images();
  choose_chunk();
  if (t_.paired && c_.groups > 1) return std::unexpected("bf16 pairs need a single group");
  if (t_.paired && c_.x.batch % 2 != 0) return std::unexpected("bf16 pairs need an even micro-batch");
  for (std::int64_t kh = 0; kh < w.height; ++kh) {
    if (one_channel()) {
      add_row_of_taps(kh);
      continue;
    }
    for (std::int64_t kw = 0; kw < w.width; ++kw)
      add_tap(kh, kw, 1, valid_outputs(kw, w.stride_w, w.dilation_w, w.pad_left, c_.x.width, c_.y.width));
  }
  if (!refusal_.empty()) return std::unexpected(refusal_);
  return std::move(t_);
}

std::int64_t input_rows(const Convolution& c, std::int64_t output_rows) {
  return (output_rows - 1) * c.window.stride_h + (c.window.height - 1) * c.window.dilation_h + 1;
}

std::size_t aligned(std::int64_t elements) {
  return static_cast<std::size_t>(round_up<std::int64_t>(elements * 2, 64));
}

class WeightGradient final : public Kernel {
 public:
  WeightGradient(KernelInfo info, const Convolution& c, GradientTables tables)
      : Kernel(std::move(info)),
        c_(c),
        t_(std::move(tables)),
        column_sum_(column_sum(c.y.type)),
        packers_(pair_packers()) {
    // Packing is done once for all products, and products of one-channel images share their sums.
    const bool apart = !t_.paired && c_.x.channels / c_.groups > 1;
    const auto products = static_cast<std::int64_t>(t_.calls.size()) * c_.groups;
    if (apart) products_parts_ = std::clamp<std::int64_t>(products, 1, most_parts);
    if (apart) info_.parts = products_parts_ + (c_.bias_gradient ? 1 : 0);
  }

  // Packed dy, packed x, and a row's room for transposing.
  static std::array<std::size_t, 3> scratch_parts(const Convolution& c, const GradientTables& t) {
    if (!t.paired) return {};
    return {aligned(t.chunk_rows * t.dy.row_stride), aligned(input_rows(c, t.chunk_rows) * t.x.row_stride),
            aligned(std::max(t.dy.row_stride, t.x.row_stride))};
  }

  void run(const Arguments& arguments) const override {
    for (std::int64_t row = 0; row < c_.y.height; row += t_.chunk_rows) {
      const TapRange chunk{row, std::min(row + t_.chunk_rows, c_.y.height)};
      const Sources sources = t_.paired ? pack(arguments, chunk) : in_place(arguments);
      for (std::int64_t group = 0; group < c_.groups; ++group)
        for (const GradientCall& call : t_.calls)
          run_call(call, chunk, group, sources, static_cast<float*>(arguments.outputs[0]));
      if (c_.bias_gradient)
        add_bias(chunk, static_cast<const std::byte*>(arguments.inputs[1]),
                 static_cast<float*>(arguments.outputs[1]));
    }
  }

  // Some of the products, or, last, the sums of the bias.
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    if (info_.parts == 1) return run(arguments);
    if (part == products_parts_)
      return add_bias({0, c_.y.height}, static_cast<const std::byte*>(arguments.inputs[1]),
                      static_cast<float*>(arguments.outputs[1]));
    const auto calls = static_cast<std::int64_t>(t_.calls.size());
    const PartRange range = part_range(calls * c_.groups, part, products_parts_);
    for (std::int64_t row = 0; row < c_.y.height; row += t_.chunk_rows)
      for (std::int64_t i = range.begin; i < range.end; ++i)
        run_call(t_.calls[static_cast<std::size_t>(i % calls)],
                 {row, std::min(row + t_.chunk_rows, c_.y.height)}, i / calls, in_place(arguments),
                 static_cast<float*>(arguments.outputs[0]));
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

  Sources pack(const Arguments& arguments, TapRange chunk) const {
    const auto parts = scratch_parts(c_, t_);
    auto* dy = static_cast<std::byte*>(arguments.scratch);
    auto* x = dy + parts[0];
    auto* room = reinterpret_cast<bf16*>(x + parts[1]);
    const Window& w = c_.window;
    const std::int64_t first = std::clamp<std::int64_t>(chunk.begin * w.stride_h - w.pad_top, 0, c_.x.height);
    const std::int64_t last = (chunk.end - 1) * w.stride_h - w.pad_top + (w.height - 1) * w.dilation_h + 1;
    const TapRange x_rows{first, std::clamp(last, first, c_.x.height)};
    pack_rows(arguments.inputs[1], c_.y, t_.dy, !t_.out_inner, chunk, reinterpret_cast<bf16*>(dy), room);
    pack_rows(arguments.inputs[0], c_.x, t_.x, t_.out_inner, x_rows, reinterpret_cast<bf16*>(x), room);
    return {x, dy, first, chunk.begin};
  }

  void run_call(const GradientCall& call, TapRange chunk, std::int64_t group, const Sources& sources,
                float* dw) const {
    const Window& w = c_.window;
    const std::int64_t begin = std::max(chunk.begin, call.rows.begin),
                       end = std::min(chunk.end, call.rows.end);
    if (begin >= end) return;
    const auto size = static_cast<std::int64_t>(size_in_bytes(c_.x.type));
    const std::int64_t in = c_.x.channels / c_.groups, out = c_.y.channels / c_.groups;
    const std::int64_t dy_row = begin - sources.first_dy_row;
    const std::int64_t x_row =
        begin * w.stride_h + call.tap_h * w.dilation_h - w.pad_top - sources.first_x_row;
    const std::byte* dy = sources.dy + (dy_row * t_.dy.row_stride + call.dy_start + group * out) * size;
    const std::byte* x = sources.x + (x_row * t_.x.row_stride + call.x_start + group * in) * size;
    const OffsetTable& offsets = t_.offsets[call.offsets];
    float* result = dw + group * t_.group_elements + call.dw_start;
    const auto count = static_cast<std::uint64_t>((end - begin) * call.positions);
    if (t_.out_inner)
      t_.products[call.product](dy, x, result, count, offsets.dy.data(), offsets.x.data());
    else
      t_.products[call.product](x, dy, result, count, offsets.x.data(), offsets.dy.data());
  }

  void add_bias(TapRange rows, const std::byte* dy, float* db) const {
    const auto size = static_cast<std::int64_t>(size_in_bytes(c_.y.type));
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      column_sum_(dy + row * c_.y.row_stride * size, c_.y.column_stride, c_.y.columns(), c_.y.channels, db);
  }

  Convolution c_;
  GradientTables t_;
  ColumnSum* column_sum_;
  PairPackers packers_;
  std::int64_t products_parts_ = 1;
};

KernelInfo describe(const Convolution& c, const GradientTables& t, ProductMaker maker) {
  KernelInfo info;
  info.name =
      fmt::format("weight gradient, {}, {} along vectors{}{}", name_of(maker), t.out_inner ? "out" : "in",
                  t.chunk_rows < c.y.height ? fmt::format(", chunks of {} rows", t.chunk_rows) : "",
                  c.bias_gradient ? " + bias" : "");
  info.flops = 2 * multiply_adds(c) + (c.bias_gradient ? static_cast<double>(c.y.element_count()) : 0);
  info.bytes = static_cast<double>((c.x.element_count() + c.y.element_count()) *
                                   static_cast<std::int64_t>(size_in_bytes(c.x.type))) +
               8 * static_cast<double>(t.group_elements * c.groups);
  for (std::size_t part : WeightGradient::scratch_parts(c, t)) info.scratch_bytes += part;
  info.inputs = 2;
  info.outputs = c.bias_gradient ? 2 : 1;
  info.weights = t.out_inner ? WeightLayout::taps_in_out : WeightLayout::taps_out_in;
  info.arithmetic = c.x.type;
  return info;
}

template <ProductMaker maker>
Prepared prepare_weight_gradient(const Convolution& c) {
  if (std::string fault = fault_of(c); !fault.empty()) return refuse(name_of(maker), fault);
  if (!c.epilogue.steps.empty()) return refuse(name_of(maker), "a weight gradient has no epilogue");
  if (c.x.type != c.y.type) return refuse(name_of(maker), "x and dy differ in type");
  auto tables = GradientTableBuilder(c, maker).build();
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
