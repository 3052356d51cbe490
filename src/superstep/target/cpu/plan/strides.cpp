#include "superstep/target/cpu/plan/strides.h"

#include <algorithm>
#include <numeric>

namespace superstep::target::cpu {
namespace {

struct Dimension {
  std::int64_t extent, stride;
};

// The dimensions without those of extent 1, and with neighbours joined where one stride can walk both.
std::vector<Dimension> joined(const Shape& shape, const Strides& strides) {
  std::vector<Dimension> result;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Dimension next{shape[axis], strides[static_cast<std::size_t>(axis)]};
    if (next.extent == 1) continue;
    if (!result.empty() && result.back().stride == next.extent * next.stride)
      result.back() = {result.back().extent * next.extent, next.stride};
    else
      result.push_back(next);
  }
  return result;
}

}  // namespace

std::optional<Strides> reshape_strides(const Shape& from, const Strides& strides, const Shape& to) {
  if (from.element_count() == 0) return to.row_major_strides();
  const std::vector<Dimension> blocks = joined(from, strides);
  Strides result(static_cast<std::size_t>(to.rank()));
  std::size_t block = 0;
  std::int64_t left = blocks.empty() ? 1 : blocks[0].extent;  // of the current block, not yet given out
  for (int axis = 0; axis < to.rank(); ++axis) {
    const std::int64_t extent = to[axis];
    if (extent == 1) continue;
    if (left == 1) {
      if (++block >= blocks.size()) return std::nullopt;
      left = blocks[block].extent;
    }
    if (left % extent != 0) return std::nullopt;
    left /= extent;
    result[static_cast<std::size_t>(axis)] = blocks[block].stride * left;
  }
  // Dimensions of extent 1 may have any stride: take what a dense tensor would have.
  for (int axis = to.rank() - 1; axis >= 0; --axis)
    if (to[axis] == 1)
      result[static_cast<std::size_t>(axis)] =
          axis + 1 < to.rank() ? result[static_cast<std::size_t>(axis) + 1] * to[axis + 1] : 1;
  return result;
}

Strides dense_strides(const Shape& shape, const std::vector<int>& order) {
  Strides strides(static_cast<std::size_t>(shape.rank()));
  std::int64_t step = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[static_cast<std::size_t>(*axis)] = step;
    step *= shape[*axis];
  }
  return strides;
}

std::vector<int> physical_order(const Shape& shape, const Strides& strides) {
  std::vector<int> order;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1) order.push_back(axis);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return strides[static_cast<std::size_t>(a)] > strides[static_cast<std::size_t>(b)];
  });
  return order;
}

bool is_dense(const Shape& shape, const Strides& strides) {
  std::int64_t step = 1;
  const std::vector<int> order = physical_order(shape, strides);
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    if (strides[static_cast<std::size_t>(*axis)] != step) return false;
    step *= shape[*axis];
  }
  return true;
}

}  // namespace superstep::target::cpu
