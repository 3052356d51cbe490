// Walking over the elements of a shape with any strides: what transposing, slicing, broadcasting and
// reducing have in common.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::op {

// Calls body(i, offset) for every element of `shape` in row-major order: i counts from 0, offset is
// start + sum over axes of index * stride.
template <class Body>
void for_each_strided(const Shape& shape, const std::vector<std::int64_t>& strides, std::int64_t start,
                      Body&& body) {
  const std::int64_t count = shape.element_count();
  if (count == 0) return;
  if (shape.rank() == 0) {
    body(std::int64_t{0}, start);
    return;
  }
  const int last = shape.rank() - 1;
  const std::int64_t inner = shape[last], inner_stride = strides[static_cast<std::size_t>(last)];
  std::vector<std::int64_t> index(static_cast<std::size_t>(last), 0);
  for (std::int64_t i = 0, row = start; i < count;) {
    for (std::int64_t j = 0; j < inner; ++j) body(i++, row + j * inner_stride);
    for (int axis = last - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      row += strides[a];
      if (++index[a] < shape[axis]) break;
      row -= strides[a] * shape[axis];
      index[a] = 0;
    }
  }
}

// Strides with which a dense tensor of shape `from` is read as the broadcast shape `to`.
inline std::vector<std::int64_t> broadcast_strides(const Shape& from, const Shape& to) {
  const std::vector<std::int64_t> dense = from.row_major_strides();
  std::vector<std::int64_t> strides(static_cast<std::size_t>(to.rank()), 0);
  const int shift = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from[axis] != 1)
      strides[static_cast<std::size_t>(axis + shift)] = dense[static_cast<std::size_t>(axis)];
  return strides;
}

// target[i] = source[offset] over `shape`, whatever the element type.
inline void copy_strided(const Tensor& source, const Shape& shape, const std::vector<std::int64_t>& strides,
                         std::int64_t start, Tensor& target) {
  dispatch(source.type(), [&]<class T>() {
    const T* from = source.as<T>().data();
    T* to = target.as<T>().data();
    for_each_strided(shape, strides, start,
                     [&](std::int64_t i, std::int64_t offset) { to[i] = from[offset]; });
  });
}

// The elements of `all` at `positions`.
template <class T>
std::vector<T> pick(const std::vector<T>& all, const std::vector<int>& positions) {
  std::vector<T> result;
  for (int position : positions) result.push_back(all[static_cast<std::size_t>(position)]);
  return result;
}

}  // namespace superstep::op
