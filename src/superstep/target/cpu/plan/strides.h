// Element strides of views: how reshapes and transposes become other strides over the same memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "superstep/base/shape.h"

namespace superstep::target::cpu {

using Strides = std::vector<std::int64_t>;

// The strides that `to` has over the memory where `from` has strides `strides`, element order as in a
// reshape; nothing when no strides can say it (a copy is needed). The element counts must agree.
std::optional<Strides> reshape_strides(const Shape& from, const Strides& strides, const Shape& to);

// Strides of a dense tensor whose dimensions lie in memory in the order `order`, outermost first.
Strides dense_strides(const Shape& shape, const std::vector<int>& order);

// True when the strides reach every one of the shape's elements exactly once in one gapless block.
bool is_dense(const Shape& shape, const Strides& strides);

// The dimensions of other extents than 1, outermost (largest stride) first; ties keep their order.
std::vector<int> physical_order(const Shape& shape, const Strides& strides);

}  // namespace superstep::target::cpu
