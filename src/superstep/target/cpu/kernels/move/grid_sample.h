// Pictures read at points between their elements, as GridSample does.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// y[n, c, i, j] = x[n, c] at the point grid[n, i, j] = (along the width, along the height), -1 to 1, by
// linear interpolation or the nearest element (halves to even). f32; strides in elements, any order. An
// element of a picture is less than 2^31 elements away from its first. Slots: inputs x, grid; outputs y.
struct GridSample {
  enum class Padding : std::uint8_t { zeros, border, reflection };
  struct Places {
    std::int64_t batch = 0, channel = 0, row = 0, column = 0;  // strides
  };

  std::int64_t batch = 1, channels = 1, height = 1, width = 1;  // of x
  std::int64_t rows = 1, columns = 1;                           // of points
  Places x, grid, y;  // the grid's `channel` goes from the coordinate along the width to the other
  bool nearest = false, align_corners = false;
  Padding padding = Padding::zeros;
};

Prepared prepare(const GridSample& sample);

}  // namespace superstep::kernels
