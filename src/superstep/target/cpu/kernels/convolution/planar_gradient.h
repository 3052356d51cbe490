// The gradient of planar convolutions (planar.h) by their weights.
#pragma once

#include <optional>
#include <vector>

#include "superstep/target/cpu/kernels/convolution/planar.h"

namespace superstep::kernels {

// Of several results of the same window over the same x. Along the width the window goes on by one column;
// outside the image there are zeros.
// Sums are f32 along the columns of a few rows, and f64 over these, in an order that depends on the extents
// and the instruction set alone. Slots: inputs x and each part's dy, the cotangent of its result; outputs
// each part's weights' gradient f32 [channels of dy][channels of x][window's height][width], written, or
// added to where `accumulate` says so.
struct PlanarWeightGradient {
  struct Part {
    Planes dy;
    bool accumulate = false;
  };
  std::int64_t batch = 1;
  Planes x;
  Window window;
  std::vector<Part> parts;
};

Prepared prepare(const PlanarWeightGradient& gradient);

bool is_planar_gradient(const Kernel& kernel);

// What makes the results of both kernels in one pass over their x; nothing where they are no two such
// gradients of the same window.
std::optional<PlanarWeightGradient> joined_gradients(const Kernel& first, const Kernel& second);

}  // namespace superstep::kernels
