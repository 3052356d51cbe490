// How a number of rows is divided over plans of fixed sizes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::edge {

struct TimedSize {
  std::int64_t rows = 1;
  double seconds = 0;  // of one call
};

// For every count of rows up to `most`: the sizes of the calls, largest first, whose seconds are least in
// all; the last call may have rows to spare. Element n is of n rows. `sizes` is not empty.
std::vector<std::vector<std::int64_t>> cheapest_splits(std::span<const TimedSize> sizes, std::int64_t most);

}  // namespace superstep::edge
