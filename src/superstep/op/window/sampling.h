// Reading a picture at points between its elements: what GridSample, RoiAlign and DeformConv have in common.
#pragma once

#include <string>

#include "superstep/op/core/definition.h"

namespace superstep::op {

// One element that a point reads along one axis.
struct SampleTap {
  Var index;   // i64 [batch, points], inside the axis
  Var weight;  // [batch, points] of x's element type
};

// The taps of linear interpolation along an axis of `extent` at `position` [batch, points], counted in
// elements; elements outside count as zero.
std::vector<SampleTap> linear_taps(Var position, std::int64_t extent);

// For every choice of a tap an axis, x there times the product of the weights: each [batch, points,
// channels]. x is [batch, channels, spatial...], `axes` has an entry a spatial axis; `picture` (i64 [batch],
// optional) says which of x's batch is read.
std::vector<Var> sample_terms(Var x, std::span<const std::vector<SampleTap>> axes, Var picture = {});

// Their sum: [batch, channels, points].
Var sample(Var x, std::span<const std::vector<SampleTap>> axes);

struct GridSampleAttributes {
  std::string mode = "linear";    // nearest (halves to even), cubic (Keys, 1981, with a = -0.75)
  std::string padding = "zeros";  // border, reflection
  bool align_corners = false;  // -1 and 1 are the centres of the outermost elements, else their outer edges
};

// x [N, C, spatial...] at the points of grid [N, points..., r], r spatial axes, the last axis of x first, in
// coordinates from -1 to 1: [N, C, points...].
Var grid_sample(Var x, Var grid, const GridSampleAttributes& attributes = {});

// The grid of an affine map theta [N, r, r + 1] (r of 2 or 3) for pictures of `size` [N, C, spatial...]:
// [N, spatial..., r].
Var affine_grid(Var theta, const Shape& size, bool align_corners = false);

std::span<const Definition> sampling_operators();  // GridSample AffineGrid

}  // namespace superstep::op
