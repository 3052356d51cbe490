// Resampling on regular grids, axis by axis: every output element is a weighted sum of input elements.
#pragma once

#include <string>

#include "superstep/op/core/definition.h"

namespace superstep::op {

struct ResizeAttributes {
  std::string mode = "nearest";  // linear, cubic
  // Where the centre of an output element lies in the input: half_pixel, half_pixel_symmetric,
  // pytorch_half_pixel, align_corners, asymmetric, tf_crop_and_resize (ONNX, operator set 19),
  // tf_half_pixel_for_nn (operator set 11).
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";  // round_prefer_ceil, floor, ceil
  double cubic_coefficient = -0.75;
  bool exclude_outside = false;  // weights of elements outside are left out and the others scaled up
  bool antialias = false;        // shrinking: the filter is wider by as much
};

// To `shape`, of x's rank.
Var resize(Var x, const Shape& shape, const ResizeAttributes& attributes = {});

std::span<const Definition> resize_operators();  // Resize, Upsample

}  // namespace superstep::op
