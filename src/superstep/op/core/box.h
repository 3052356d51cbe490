// A box of a larger result that is evaluated alone: where each element's value depends on its position in the
// whole (random numbers), the position is counted there.
#pragma once

#include "superstep/op/core/definition.h"
#include "superstep/op/core/strided.h"

namespace superstep::op {

struct Box {
  std::vector<std::int64_t> begin;  // along every axis of the whole
  Shape whole;
};

inline Box whole_box(const Shape& shape) {
  return {std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 0), shape};
}

// Calls body(i, place) for the elements of a box of `shape` in row-major order: i counts from 0, `place` is
// the element's number in the whole.
template <class Body>
void for_each_in_box(const Box& box, const Shape& shape, Body&& body) {
  const std::vector<std::int64_t> strides = box.whole.row_major_strides();
  std::int64_t start = 0;
  for (std::size_t axis = 0; axis < box.begin.size(); ++axis) start += box.begin[axis] * strides[axis];
  for_each_strided(shape, strides, start, body);
}

}  // namespace superstep::op
