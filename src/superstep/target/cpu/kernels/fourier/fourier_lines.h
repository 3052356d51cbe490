// The lines of a tensor along one axis, in bundles that are transformed side by side. Internal to the
// kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/target/cpu/kernels/fourier/fourier.h"

namespace superstep::kernels {

// A dimension of two tensors walked together: strides in floats.
struct FourierDimension {
  std::int64_t count = 1, x = 0, y = 0;
};
struct FourierOffset {
  std::int64_t x = 0, y = 0;
};

// Without dimensions of one element; neighbours that are one in both tensors joined; the outermost first.
std::vector<FourierDimension> joined_dimensions(std::vector<FourierDimension> dimensions);

// Where element `number` of some dimensions lies, the last one counting fastest.
FourierOffset offset_of(std::span<const FourierDimension> dimensions, std::int64_t number);
std::int64_t count_of(std::span<const FourierDimension> dimensions);

// Lines that lie `x` and `y` apart, `width` of them in a bundle, and how often there are such.
struct FourierBundles {
  FourierDimension side;
  std::vector<FourierDimension> others;
  std::int64_t width = 1;

  std::int64_t in_a_row() const { return (side.count + width - 1) / width; }
  std::int64_t count() const { return count_of(others) * in_a_row(); }
};

// Of all dimensions but the axis itself. `unit`: the stride of elements that are neighbours.
FourierBundles bundles_of(std::vector<FourierDimension> dimensions, std::int64_t unit, std::int64_t lanes,
                          std::int64_t length);

}  // namespace superstep::kernels
