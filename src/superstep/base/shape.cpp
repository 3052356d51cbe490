#include "superstep/base/shape.h"

#include <algorithm>

#include "superstep/base/error.h"

namespace superstep {

Shape::Shape(std::initializer_list<std::int64_t> extents) : Shape(std::vector<std::int64_t>(extents)) {}

Shape::Shape(std::vector<std::int64_t> extents) : extents_(std::move(extents)) {
  for (std::int64_t extent : extents_) {
    if (extent < 0)
      throw Error(ErrorCode::invalid_argument, "a shape has a negative extent: " + to_string(*this));
    if (__builtin_mul_overflow(count_, extent, &count_))
      throw Error(ErrorCode::invalid_argument, "a shape has too many elements: " + to_string(*this));
  }
}

std::vector<std::int64_t> Shape::row_major_strides() const {
  std::vector<std::int64_t> strides(extents_.size());
  std::int64_t step = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = step;
    step *= (*this)[axis];
  }
  return strides;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) text += (axis ? "," : "") + std::to_string(shape[axis]);
  return text + "]";
}

int normalize_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    throw Error(ErrorCode::invalid_argument,
                "axis " + std::to_string(axis) + " is outside a tensor of rank " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) {
    const int axis_a = axis - (rank - a.rank()), axis_b = axis - (rank - b.rank());
    const std::int64_t extent_a = axis_a < 0 ? 1 : a[axis_a], extent_b = axis_b < 0 ? 1 : b[axis_b];
    if (extent_a != extent_b && extent_a != 1 && extent_b != 1)
      throw Error(ErrorCode::invalid_argument,
                  "shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    extents[static_cast<std::size_t>(axis)] = extent_a == 1 ? extent_b : extent_a;
  }
  return Shape(std::move(extents));
}

}  // namespace superstep
