// Boxes of integer coordinates: half-open along every axis.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "superstep/base/function_ref.h"

namespace superstep::openmp {

struct Box {
  std::vector<std::int64_t> begin, end;

  std::size_t rank() const { return begin.size(); }
  std::int64_t extent(std::size_t axis) const { return std::max<std::int64_t>(0, end[axis] - begin[axis]); }
  std::int64_t volume() const;  // 1 without axes
  bool empty() const { return volume() == 0; }
  bool contains(const Box& other) const;  // an empty box lies in every box
  friend bool operator==(const Box&, const Box&) = default;
  friend auto operator<=>(const Box&, const Box&) = default;
};

Box whole(const std::vector<std::int64_t>& extents);
Box intersection(const Box& a, const Box& b);
// The smallest box around both; an empty one adds nothing.
Box hull(const Box& a, const Box& b);

// Elements [begin, end) of a row-major array as at most 2 x rank - 1 boxes, in order.
std::vector<Box> boxes_of(std::int64_t begin, std::int64_t end, const std::vector<std::int64_t>& extents);

// The rows of a box in a row-major array: where each begins among the array's elements, and its length.
void for_each_row(const Box& box, const std::vector<std::int64_t>& extents,
                  FunctionRef<void(std::int64_t first, std::int64_t length)> f);

}  // namespace superstep::openmp
