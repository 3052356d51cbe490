// The static shape of a tensor: a short list of non-negative extents, outermost dimension first.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep {

class Shape {
 public:
  Shape() = default;  // a scalar
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::vector<std::int64_t> extents);  // throws Error on a negative extent or overflow

  int rank() const { return static_cast<int>(extents_.size()); }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::int64_t element_count() const { return count_; }
  const std::vector<std::int64_t>& extents() const { return extents_; }
  auto begin() const { return extents_.begin(); }
  auto end() const { return extents_.end(); }

  // Element strides of a dense row-major tensor of this shape.
  std::vector<std::int64_t> row_major_strides() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.extents_ == b.extents_; }
  friend auto operator<=>(const Shape& a, const Shape& b) { return a.extents_ <=> b.extents_; }

 private:
  std::vector<std::int64_t> extents_;
  std::int64_t count_ = 1;
};

std::string to_string(const Shape& shape);  // "[512,1,11,11]", "[]" for a scalar

// The axis counted from the front; `axis` may be negative, counted from the back (-1 is the last).
// Throws Error when it lies outside [-rank, rank).
int normalize_axis(std::int64_t axis, int rank);

// NumPy's broadcasting of two shapes; throws Error when they do not fit.
Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace superstep

#pragma GCC visibility pop
