// Weight gradients: for each tap a product of dy with the shifted x, summed over the columns of a row within
// the product and over rows by batch-reduction.
//
//   dw[kh, kw] (channels of one side) x (channels of the other) += sum over rows, columns of dy x^T
//
// The side whose channels fill vectors better lies along the contiguous dimension. Rows are taken in chunks
// that stay in the second-level cache while all taps and panels are done.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/target/cpu/kernels/column_sum.h"
#include "superstep/target/cpu/kernels/convolution_kernels.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t chunk_bytes = 256 * 1024;  // of dy and x in the second-level cache

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
  bool one_channel() const { return in_ == 1 && c_.groups == 1 && joined_ && c_.x.column_stride == 1; }
  void choose_side();
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

void GradientTableBuilder::choose_chunk() {
  const std::int64_t row = 4 * (c_.y.columns() * out_ + c_.window.stride_h * c_.x.columns() * in_);
  t_.chunk_rows = std::clamp<std::int64_t>(chunk_bytes / row, 1, c_.y.height);
}

ProductShape GradientTableBuilder::shape_of(std::int64_t panel, std::int64_t columns,
                                            std::int64_t taps) const {
  const std::int64_t step = joined_ ? c_.window.stride_w : 1;
  const std::int64_t dy_stride = c_.y.column_stride, x_stride = c_.x.column_stride * step;
  ProductShape shape;
  shape.m = panel;
  shape.k = columns;
  shape.c_stride = panel;
  shape.accumulate = true;
  shape.type = c_.x.type;
  shape.a_stride = t_.out_inner ? dy_stride : x_stride;
  if (one_channel()) {
    shape.n = taps;
    shape.b_k_stride = x_stride;
    shape.b_n_stride = c_.window.dilation_w * c_.x.batch * c_.x.column_stride;
    return shape;
  }
  shape.n = t_.out_inner ? in_ : out_;
  shape.b_k_stride = t_.out_inner ? x_stride : dy_stride;
  shape.b_n_stride = 1;
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
      table.dy.push_back(static_cast<std::uint64_t>(c_.y.offset(row, w) * size));
      table.x.push_back(
          static_cast<std::uint64_t>(c_.x.offset(row * c_.window.stride_h, w * c_.window.stride_w) * size));
    }
  t_.offsets.push_back(std::move(table));
  return tables_[positions] = t_.offsets.size() - 1;
}

void GradientTableBuilder::add_panel(GradientCall call, std::int64_t first, std::int64_t columns,
                                     std::int64_t taps, std::int64_t tap) {
  const std::int64_t inner = t_.out_inner ? out_ : in_, depth = t_.out_inner ? in_ : out_;
  const std::int64_t panel = std::min(panel_width, inner - first);
  (t_.out_inner ? call.dy_start : call.x_start) += first;
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
  call.dy_start = c_.y.offset(0, range.begin);
  call.x_start = c_.x.offset(0, range.begin * w.stride_w + first_kw * w.dilation_w - w.pad_left);
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
  choose_chunk();
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

class WeightGradient final : public Kernel {
 public:
  WeightGradient(KernelInfo info, const Convolution& c, GradientTables tables)
      : Kernel(std::move(info)), c_(c), t_(std::move(tables)), column_sum_(column_sum(c.y.type)) {}

  void run(const Arguments& arguments) const override {
    const auto* x = static_cast<const std::byte*>(arguments.inputs[0]);
    const auto* dy = static_cast<const std::byte*>(arguments.inputs[1]);
    auto* dw = static_cast<float*>(arguments.outputs[0]);
    for (std::int64_t row = 0; row < c_.y.height; row += t_.chunk_rows) {
      const TapRange chunk{row, std::min(row + t_.chunk_rows, c_.y.height)};
      for (std::int64_t group = 0; group < c_.groups; ++group)
        for (const GradientCall& call : t_.calls) run_call(call, chunk, group, x, dy, dw);
      if (c_.bias_gradient) add_bias(chunk, dy, static_cast<float*>(arguments.outputs[1]));
    }
  }

 private:
  void run_call(const GradientCall& call, TapRange chunk, std::int64_t group, const std::byte* x,
                const std::byte* dy, float* dw) const {
    const Window& w = c_.window;
    const std::int64_t begin = std::max(chunk.begin, call.rows.begin),
                       end = std::min(chunk.end, call.rows.end);
    if (begin >= end) return;
    const auto size = static_cast<std::int64_t>(size_in_bytes(c_.x.type));
    const std::int64_t in = c_.x.channels / c_.groups, out = c_.y.channels / c_.groups;
    const std::int64_t x_row = begin * w.stride_h + call.tap_h * w.dilation_h - w.pad_top;
    const std::byte* dy_start = dy + (begin * c_.y.row_stride + call.dy_start + group * out) * size;
    const std::byte* x_start = x + (x_row * c_.x.row_stride + call.x_start + group * in) * size;
    const OffsetTable& offsets = t_.offsets[call.offsets];
    float* result = dw + group * t_.group_elements + call.dw_start;
    const auto count = static_cast<std::uint64_t>((end - begin) * call.positions);
    if (t_.out_inner)
      t_.products[call.product](dy_start, x_start, result, count, offsets.dy.data(), offsets.x.data());
    else
      t_.products[call.product](x_start, dy_start, result, count, offsets.x.data(), offsets.dy.data());
  }

  void add_bias(TapRange rows, const std::byte* dy, float* db) const {
    const auto size = static_cast<std::int64_t>(size_in_bytes(c_.y.type));
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      column_sum_(dy + row * c_.y.row_stride * size, c_.y.column_stride, c_.y.columns(), c_.y.channels, db);
  }

  Convolution c_;
  GradientTables t_;
  ColumnSum* column_sum_;
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
  info.inputs = 2;
  info.outputs = c.bias_gradient ? 2 : 1;
  info.weights = t.out_inner ? WeightLayout::taps_in_out : WeightLayout::taps_out_in;
  return info;
}

}  // namespace

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

template Prepared prepare_weight_gradient<ProductMaker::libxsmm>(const Convolution&);
template Prepared prepare_weight_gradient<ProductMaker::portable>(const Convolution&);

}  // namespace superstep::kernels
