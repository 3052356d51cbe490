#include "superstep/target/numerics/matrix_product.h"

#include <algorithm>

#include "superstep/op/core/strided.h"

namespace superstep::target::numerics {
namespace {

class Matrices final : public Product {
 public:
  Matrices(const MatrixLayout& layout, std::vector<std::int64_t> a_starts, std::vector<std::int64_t> b_starts)
      : layout_(layout), a_starts_(std::move(a_starts)), b_starts_(std::move(b_starts)) {
    groups = static_cast<std::int64_t>(a_starts_.size());
    rows = layout.m, columns = layout.n, k = layout.k;
    bias_by_place = true;
  }
  void begin(const float* a, const float* b) override { left_ = a, right_ = b; }
  Panel left(std::int64_t group, std::int64_t row, std::int64_t row_count, std::int64_t first,
             std::int64_t count, float* buffer) const override {
    const float* const a = left_ + a_starts_[static_cast<std::size_t>(group)];
    if (!layout_.transpose_a) return {a + row * k + first, k};
    for (std::int64_t l = 0; l < count; ++l)
      for (std::int64_t i = 0; i < row_count; ++i) buffer[i * count + l] = a[(first + l) * rows + row + i];
    return {buffer, count};
  }
  void right(std::int64_t group, std::int64_t first, std::int64_t count, std::int64_t column,
             std::int64_t column_count, float* buffer, std::int64_t pitch) const override {
    const float* const b = right_ + b_starts_[static_cast<std::size_t>(group)];
    if (layout_.transpose_b)
      for (std::int64_t j = 0; j < column_count; ++j)
        for (std::int64_t l = 0; l < count; ++l) buffer[l * pitch + j] = b[(column + j) * k + first + l];
    else
      for (std::int64_t l = 0; l < count; ++l)
        std::copy_n(b + (first + l) * columns + column, column_count, buffer + l * pitch);
    for (std::int64_t l = 0; l < count; ++l)
      std::fill(buffer + l * pitch + column_count, buffer + (l + 1) * pitch, 0.0f);
  }
  Run results(std::int64_t group, std::int64_t row, std::int64_t column) const override {
    return {(group * rows + row) * columns + column, columns - column};
  }

 private:
  MatrixLayout layout_;
  std::vector<std::int64_t> a_starts_, b_starts_;
  const float *left_ = nullptr, *right_ = nullptr;
};

class Sums final : public Product {
 public:
  Sums(const Shape& shape, const std::vector<int>& axes) {
    const std::vector<std::int64_t> strides = shape.row_major_strides();
    std::vector<std::int64_t> kept, kept_strides, summed, summed_strides;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const bool is_summed = std::ranges::find(axes, axis) != axes.end();
      (is_summed ? summed : kept).push_back(shape[axis]);
      (is_summed ? summed_strides : kept_strides).push_back(strides[static_cast<std::size_t>(axis)]);
    }
    const auto offsets = [](const std::vector<std::int64_t>& extents,
                            const std::vector<std::int64_t>& steps) {
      std::vector<std::int64_t> result;
      op::for_each_strided(Shape(extents), steps, 0,
                           [&](std::int64_t, std::int64_t at) { result.push_back(at); });
      return result;
    };
    columns_ = offsets(kept, kept_strides);
    products_ = offsets(summed, summed_strides);
    columns = static_cast<std::int64_t>(columns_.size());
    k = static_cast<std::int64_t>(products_.size());
    ones_.assign(static_cast<std::size_t>(k), 1.0f);
  }
  void begin(const float*, const float* b) override { right_ = b; }
  Panel left(std::int64_t, std::int64_t, std::int64_t, std::int64_t first, std::int64_t,
             float*) const override {
    return {ones_.data() + first, k};
  }
  void right(std::int64_t, std::int64_t first, std::int64_t count, std::int64_t column,
             std::int64_t column_count, float* buffer, std::int64_t pitch) const override {
    for (std::int64_t l = 0; l < count; ++l, buffer += pitch) {
      const float* const from = right_ + products_[static_cast<std::size_t>(first + l)];
      for (std::int64_t j = 0; j < column_count; ++j)
        buffer[j] = from[columns_[static_cast<std::size_t>(column + j)]];
      std::fill(buffer + column_count, buffer + pitch, 0.0f);
    }
  }
  Run results(std::int64_t, std::int64_t, std::int64_t column) const override {
    return {column, columns - column};
  }

 private:
  std::vector<std::int64_t> columns_, products_;  // where they begin, and where their products lie from there
  std::vector<float> ones_;
  const float* right_ = nullptr;
};

std::vector<std::int64_t> starts_of(const Shape& stack, const Shape& batch, std::int64_t matrix) {
  std::vector<std::int64_t> starts;
  op::for_each_strided(batch, op::broadcast_strides(stack, batch), 0,
                       [&](std::int64_t, std::int64_t at) { starts.push_back(at * matrix); });
  return starts;
}

Shape leading(const Shape& shape) { return Shape(std::vector<std::int64_t>(shape.begin(), shape.end() - 2)); }

}  // namespace

std::unique_ptr<Product> matrix_product(const MatrixLayout& layout) {
  return std::make_unique<Matrices>(layout, std::vector<std::int64_t>{0}, std::vector<std::int64_t>{0});
}

std::unique_ptr<Product> stacked_product(const Shape& first, const Shape& second) {
  const Shape a = first.rank() == 1 ? Shape{1, first[0]} : first;
  const Shape b = second.rank() == 1 ? Shape{second[0], 1} : second;
  MatrixLayout layout{a[a.rank() - 2], b[b.rank() - 1], a[a.rank() - 1], false, false};
  if (b.rank() == 2) {  // the rows of all matrices are those of one
    layout.m = a.element_count() / std::max<std::int64_t>(layout.k, 1);
    return matrix_product(layout);
  }
  const Shape batch = broadcast_shapes(leading(a), leading(b));
  return std::make_unique<Matrices>(layout, starts_of(leading(a), batch, layout.m * layout.k),
                                    starts_of(leading(b), batch, layout.k * layout.n));
}

std::unique_ptr<Product> sum_product(const Shape& shape, const std::vector<int>& axes) {
  return std::make_unique<Sums>(shape, axes);
}

}  // namespace superstep::target::numerics
