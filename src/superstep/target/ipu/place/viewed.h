// Where a view of a value lies: what works on it can then be cut as the value is.
#pragma once

#include <optional>
#include <vector>

#include "superstep/target/ipu/place/spread.h"

namespace superstep::target::ipu {

// The spread of a value of shape `from` seen with other extents in the same order: none where its boxes are
// not boxes of the new extents.
std::optional<Spread> reshaped(const Spread& spread, const Shape& from, const Shape& to);

// The same with axes in another order: axis i of the view is axis order[i] of the value.
std::optional<Spread> permuted(const Spread& spread, const Shape& from, const std::vector<int>& order);

// Of the result of a node that is a view of its first input, where that is one of the two.
std::optional<Spread> viewed(const Operation& operation, const Spread& spread);

}  // namespace superstep::target::ipu
