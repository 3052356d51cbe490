#include "superstep/openmp/box.h"

#include "superstep/base/integers.h"

namespace superstep::openmp {

std::int64_t Box::volume() const {
  std::int64_t product = 1;
  for (std::size_t axis = 0; axis < rank(); ++axis) product *= extent(axis);
  return product;
}

bool Box::contains(const Box& other) const {
  if (other.empty()) return true;
  for (std::size_t axis = 0; axis < rank(); ++axis)
    if (other.begin[axis] < begin[axis] || other.end[axis] > end[axis]) return false;
  return true;
}

Box whole(const std::vector<std::int64_t>& extents) {
  return {std::vector<std::int64_t>(extents.size(), 0), extents};
}

Box intersection(const Box& a, const Box& b) {
  Box result = a;
  for (std::size_t axis = 0; axis < a.rank(); ++axis) {
    result.begin[axis] = std::max(a.begin[axis], b.begin[axis]);
    result.end[axis] = std::max(result.begin[axis], std::min(a.end[axis], b.end[axis]));
  }
  return result;
}

Box hull(const Box& a, const Box& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  Box result = a;
  for (std::size_t axis = 0; axis < a.rank(); ++axis) {
    result.begin[axis] = std::min(a.begin[axis], b.begin[axis]);
    result.end[axis] = std::max(a.end[axis], b.end[axis]);
  }
  return result;
}

namespace {

// Boxes along `axis` and the axes after it; `box` says which indices the axes before it have.
void add_boxes(std::int64_t begin, std::int64_t end, const std::vector<std::int64_t>& extents,
               std::size_t axis, Box box, std::vector<Box>& out) {
  if (begin >= end) return;
  std::int64_t slice = 1;
  for (std::size_t later = axis + 1; later < extents.size(); ++later) slice *= extents[later];
  const auto one = [&](std::int64_t index, std::int64_t from, std::int64_t to) {
    Box inner = box;
    inner.begin[axis] = index;
    inner.end[axis] = index + 1;
    add_boxes(from, to, extents, axis + 1, inner, out);
  };
  std::int64_t first = begin / slice;
  const std::int64_t last = end / slice;
  if (first == last) return one(first, begin - first * slice, end - first * slice);
  if (begin % slice != 0) {
    one(first, begin % slice, slice);
    ++first;
  }
  if (first < last) {
    Box full = box;
    full.begin[axis] = first;
    full.end[axis] = last;
    out.push_back(std::move(full));
  }
  if (end % slice != 0) one(last, 0, end % slice);
}

}  // namespace

std::vector<Box> boxes_of(std::int64_t begin, std::int64_t end, const std::vector<std::int64_t>& extents) {
  std::vector<Box> result;
  if (extents.empty()) {
    if (begin < end) result.push_back(whole(extents));
    return result;
  }
  add_boxes(begin, end, extents, 0, whole(extents), result);
  return result;
}

void for_each_row(const Box& box, const std::vector<std::int64_t>& extents,
                  FunctionRef<void(std::int64_t first, std::int64_t length)> f) {
  if (box.empty()) return;
  if (box.rank() == 0) return f(0, 1);
  const std::size_t last = box.rank() - 1;
  std::vector<std::int64_t> at = box.begin;
  while (true) {
    std::int64_t first = 0;
    for (std::size_t axis = 0; axis <= last; ++axis) first = first * extents[axis] + at[axis];
    f(first, box.extent(last));
    std::size_t axis = last;
    while (axis > 0 && ++at[axis - 1] == box.end[axis - 1]) {
      at[axis - 1] = box.begin[axis - 1];
      --axis;
    }
    if (axis == 0) return;
  }
}

}  // namespace superstep::openmp
