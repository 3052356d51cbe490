#include "superstep/target/cpu/kernels/convolution/weight_gradient_tables.h"

#include <map>
#include <tuple>
#include <utility>

#include "superstep/target/cpu/kernels/core/caches.h"

namespace superstep::kernels {

namespace {

// Of dy and x in the second-level cache.
std::int64_t chunk_bytes() { return second_level_cache() / 4; }
constexpr std::int64_t least_columns = 256;  // of a chunk: dw is read and written once a chunk

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
  void add_tap(std::int64_t row_tap, std::int64_t first_kw, std::int64_t taps, TapRange columns);
  void add_row_of_taps(std::int64_t row_tap);
  void add_panel(GradientCall call, std::int64_t first, std::int64_t columns, std::int64_t taps,
                 std::int64_t tap);
  ProductShape shape_of(std::int64_t panel, std::int64_t columns, std::int64_t taps) const;
  std::size_t product_for(const ProductShape& shape);
  std::size_t table_for(std::int64_t positions, std::int64_t rows);

  const Convolution& c_;
  ProductMaker maker_;
  std::int64_t in_, out_;
  bool joined_;
  GradientTables t_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::size_t> made_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> tables_;
  std::string refusal_;
};

std::int64_t padded(std::int64_t channels) { return (channels + 15) / 16 * 16; }

void GradientTableBuilder::choose_side() {
  t_.out_inner = one_channel() || padded(out_) * in_ <= padded(in_) * out_;
  t_.group_elements = in_ * out_ * c_.window.taps();
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
  const std::int64_t rows = std::clamp<std::int64_t>(std::max(chunk_bytes() / row, least), 1, c_.y.height);
  t_.chunk_rows = std::min(rows, c_.y.rows());
  t_.chunk_planes = rows / t_.chunk_rows;
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

// `rows`: those of a plane that a tap reaches, or as many of them as a chunk has.
std::size_t GradientTableBuilder::table_for(std::int64_t positions, std::int64_t rows) {
  const auto key = std::pair(positions, rows);
  if (const auto found = tables_.find(key); found != tables_.end()) return found->second;
  OffsetTable table;
  const auto size = static_cast<std::int64_t>(size_in_bytes(c_.x.type));
  for (std::int64_t plane = 0; plane < t_.chunk_planes; ++plane)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t w = 0; w < positions; ++w) {
        const std::int64_t dy_row = plane * c_.y.rows() + row;
        const std::int64_t x_row = plane * c_.window.stride_d * c_.x.rows() + row * c_.window.stride_h;
        table.dy.push_back(static_cast<std::uint64_t>(t_.dy.offset(dy_row, w) * size));
        table.x.push_back(static_cast<std::uint64_t>(t_.x.offset(x_row, w * c_.window.stride_w) * size));
      }
  t_.offsets.push_back(std::move(table));
  return tables_[key] = t_.offsets.size() - 1;
}

void GradientTableBuilder::add_panel(GradientCall call, std::int64_t first, std::int64_t columns,
                                     std::int64_t taps, std::int64_t tap) {
  const std::int64_t inner = t_.out_inner ? out_ : in_, depth = t_.out_inner ? in_ : out_;
  const std::int64_t panel = std::min(panel_width, inner - first);
  (t_.out_inner ? call.dy_start : call.x_start) += t_.paired ? 2 * first : first;
  call.dw_start = first * depth * c_.window.taps() + tap * depth * panel;
  call.product = product_for(shape_of(panel, columns, taps));
  t_.calls.push_back(call);
}

// `taps` neighbouring taps (1 but for one-channel images) over a range of output columns that all reach;
// row_tap: kd * height + kh.
void GradientTableBuilder::add_tap(std::int64_t row_tap, std::int64_t first_kw, std::int64_t taps,
                                   TapRange range) {
  const Window& w = c_.window;
  GradientCall call{};
  call.tap_d = row_tap / w.height;
  call.tap_h = row_tap % w.height;
  call.planes = valid_outputs(call.tap_d, w.stride_d, w.dilation_d, w.pad_front, c_.x.planes, c_.y.planes);
  call.rows = valid_outputs(call.tap_h, w.stride_h, w.dilation_h, w.pad_top, c_.x.rows(), c_.y.rows());
  const auto is_empty = [](TapRange r) { return r.begin == r.end; };
  if (is_empty(call.planes) || is_empty(call.rows) || is_empty(range)) return;
  const std::int64_t positions = range.end - range.begin;
  call.positions = joined_ ? 1 : positions;
  // Of single planes a chunk takes consecutive rows; of several all those that the tap reaches.
  call.offsets =
      table_for(call.positions, t_.chunk_planes > 1 ? call.rows.end - call.rows.begin : t_.chunk_rows);
  call.dy_start = t_.dy.offset(0, range.begin);
  call.x_start = t_.x.offset(0, range.begin * w.stride_w + first_kw * w.dilation_w - w.pad_left);
  const std::int64_t columns = joined_ ? positions * c_.y.batch : c_.y.batch;
  const std::int64_t inner = t_.out_inner ? out_ : in_;
  for (std::int64_t first = 0; first < inner; first += panel_width)
    add_panel(call, first, columns, taps, row_tap * w.width + first_kw);
}

// One input channel: runs of output columns that reach the same taps.
void GradientTableBuilder::add_row_of_taps(std::int64_t row_tap) {
  const Window& w = c_.window;
  const auto taps_at = [&](std::int64_t o) {
    return valid_taps(o, w.width, w.stride_w, w.dilation_w, w.pad_left, c_.x.width);
  };
  for (std::int64_t begin = 0, end = 0; begin < c_.y.width; begin = end) {
    const TapRange taps = taps_at(begin);
    for (end = begin + 1; end < c_.y.width && taps_at(end) == taps; ++end) {
    }
    if (taps.begin < taps.end) add_tap(row_tap, taps.begin, taps.end - taps.begin, {begin, end});
  }
}

std::expected<GradientTables, std::string> GradientTableBuilder::build() {
  const Window& w = c_.window;
  choose_side();
  choose_images();
  choose_chunk();
  if (t_.paired && c_.groups > 1) return std::unexpected("bf16 pairs need a single group");
  if (t_.paired && c_.x.batch % 2 != 0) return std::unexpected("bf16 pairs need an even micro-batch");
  for (std::int64_t row_tap = 0; row_tap < w.depth * w.height; ++row_tap) {
    if (one_channel()) {
      add_row_of_taps(row_tap);
      continue;
    }
    for (std::int64_t kw = 0; kw < w.width; ++kw)
      add_tap(row_tap, kw, 1,
              valid_outputs(kw, w.stride_w, w.dilation_w, w.pad_left, c_.x.width, c_.y.width));
  }
  if (!refusal_.empty()) return std::unexpected(refusal_);
  return std::move(t_);
}

}  // namespace

std::expected<GradientTables, std::string> make_gradient_tables(const Convolution& convolution,
                                                                ProductMaker maker) {
  return GradientTableBuilder(convolution, maker).build();
}

}  // namespace superstep::kernels
