// Extents and strides drawn for kernels that take any.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::kernels {

// From `low` to `high`, both among them.
std::int64_t draw(RandomStream& random, std::int64_t low, std::int64_t high);

// Strides for extents in a random order, with gaps now and then; `size` is what they span.
std::vector<std::int64_t> scattered_strides(RandomStream& random, const std::vector<std::int64_t>& extents,
                                            std::int64_t& size);

}  // namespace superstep::kernels
