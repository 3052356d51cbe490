// How the axes of an array are read: as samples, channels and pictures, or as no picture at all.
#pragma once

#include <cstdint>
#include <optional>

#include "superstep/base/element_type.h"
#include "superstep/base/shape.h"

namespace superstep::show {

// Axes by their place in the shape; none: the array has no such axis.
struct PictureLayout {
  std::optional<int> sample, channel, depth;
  int row = 0, column = 1;
  bool color = false;          // the channels are red, green, blue
  bool complex_pairs = false;  // the innermost axis holds real and imaginary parts
};

// [h,w]; [n,h,w]; [n,1,h,w]; [n,c,h,w] with up to 8 channels; [n,3,h,w], and of bytes [h,w,3] and [n,h,w,3],
// in colour; cubes [d,h,w], [n,d,h,w] and [n,c,d,h,w] as volumes. With an innermost axis of two they are
// complex pairs: always when `complex` says so, otherwise when they are floating-point numbers and at least
// 16 pixels either way. None when the array is not image-like: fewer than 5 pixels either way, or a table of
// at most 16 columns. `rows_are_samples` says that the outermost axis counts samples even in a cube.
std::optional<PictureLayout> picture_layout(const Shape& shape, ElementType type, bool complex,
                                            bool rows_are_samples = false);

}  // namespace superstep::show
