#include "superstep/op/product/convolution_columns.h"

#include <algorithm>

#include "superstep/op/product/convolution_loop.h"
#include "superstep/op/product/product_loop.h"

namespace superstep::op {
namespace {

using Doubles = std::vector<double>;

constexpr std::int64_t fewest_maps = 4;            // below, columns cost more than they save
constexpr std::int64_t column_elements = 1 << 16;  // of a block: half a megabyte, in a core's cache
constexpr std::int64_t short_row = 8;              // positions; shorter rows are multiplied along maps

Doubles transposed(const double* values, std::int64_t rows, std::int64_t columns) {
  Doubles result(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      result[static_cast<std::size_t>(j * rows + i)] = values[i * columns + j];
  return result;
}

class ColumnProduct {
 public:
  ColumnProduct(const ConvGeometry& g, std::span<const double> x, std::span<const double> w,
                std::span<double> y)
      : g_(g), axes_(three_axes(g.windows)), x_(x), w_(w), y_(y) {
    const auto& [d, h, v] = axes_;
    depth_ = g.in_per_group * d.kernel * h.kernel * v.kernel;
    rows_ = d.output * h.output;
    y_plane_ = rows_ * v.output;
    block_rows_ = std::clamp<std::int64_t>(column_elements / std::max<std::int64_t>(1, depth_ * v.output), 1,
                                           std::max<std::int64_t>(1, rows_));
    along_maps_ = block_rows_ * v.output < short_row && g.out_per_group > block_rows_ * v.output;
  }

  void run() {
    for (std::int64_t group = 0; group < g_.group; ++group) {
      const double* weights = w_.data() + group * g_.out_per_group * depth_;
      if (along_maps_) turned_weights_ = transposed(weights, g_.out_per_group, depth_);
      for (std::int64_t n = 0; n < g_.batch; ++n)
        for (std::int64_t row = 0; row < rows_; row += block_rows_)
          block(n * g_.group + group, weights, row, std::min(rows_, row + block_rows_));
    }
  }

 private:
  // Output rows [begin, end) of all maps of one image's group.
  void block(std::int64_t image_group, const double* weights, std::int64_t begin, std::int64_t end) {
    const Window& v = axes_[2];
    const std::int64_t positions = (end - begin) * v.output, maps = g_.out_per_group;
    fill_columns(image_group * g_.in_per_group, begin, end);
    double* y = y_.data() + image_group * maps * y_plane_ + begin * v.output;
    if (!along_maps_) return add_product(weights, columns_.data(), y, maps, positions, depth_, y_plane_);
    const Doubles columns = transposed(columns_.data(), depth_, positions);
    Doubles sums(static_cast<std::size_t>(positions * maps));
    for (std::int64_t p = 0; p < positions; ++p)
      for (std::int64_t m = 0; m < maps; ++m)
        sums[static_cast<std::size_t>(p * maps + m)] = y[m * y_plane_ + p];
    add_product(columns.data(), turned_weights_.data(), sums.data(), positions, maps, depth_, maps);
    for (std::int64_t p = 0; p < positions; ++p)
      for (std::int64_t m = 0; m < maps; ++m)
        y[m * y_plane_ + p] = sums[static_cast<std::size_t>(p * maps + m)];
  }

  // columns_[channel, tap][position], zero where a tap lies in the padding.
  void fill_columns(std::int64_t first_channel, std::int64_t begin, std::int64_t end) {
    const auto& [d, h, v] = axes_;
    columns_.resize(static_cast<std::size_t>(depth_ * (end - begin) * v.output));
    double* to = columns_.data();
    for (std::int64_t c = 0; c < g_.in_per_group; ++c) {
      const double* plane = x_.data() + (first_channel + c) * d.input * h.input * v.input;
      for (std::int64_t kd = 0; kd < d.kernel; ++kd)
        for (std::int64_t kh = 0; kh < h.kernel; ++kh)
          for (std::int64_t kv = 0; kv < v.kernel; ++kv)
            for (std::int64_t row = begin; row < end; ++row, to += v.output)
              fill_row(plane, row / h.output * d.stride - d.pad_begin + kd * d.dilation,
                       row % h.output * h.stride - h.pad_begin + kh * h.dilation, kv, to);
    }
  }

  void fill_row(const double* plane, std::int64_t id, std::int64_t ih, std::int64_t kv, double* to) const {
    const auto& [d, h, v] = axes_;
    if (id < 0 || id >= d.input || ih < 0 || ih >= h.input) {
      std::fill_n(to, v.output, 0.0);
      return;
    }
    const std::int64_t first = v.first_output(kv), last = v.last_output(kv);
    const std::int64_t line = (id * h.input + ih) * v.input - v.pad_begin + kv * v.dilation;
    std::fill(to, to + first, 0.0);
    for (std::int64_t o = first; o < last; ++o) to[o] = plane[line + o * v.stride];
    std::fill(to + last, to + v.output, 0.0);
  }

  const ConvGeometry& g_;
  std::array<Window, 3> axes_;
  std::span<const double> x_, w_;
  std::span<double> y_;
  std::int64_t depth_ = 0, rows_ = 0, y_plane_ = 0, block_rows_ = 1;
  bool along_maps_ = false;
  Doubles columns_, turned_weights_;
};

}  // namespace

bool has_columns(const ConvGeometry& geometry) { return geometry.out_per_group >= fewest_maps; }

void add_by_columns(const ConvGeometry& geometry, std::span<const double> x, std::span<const double> w,
                    std::span<double> y) {
  ColumnProduct(geometry, x, w, y).run();
}

}  // namespace superstep::op
