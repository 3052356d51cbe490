// Wall stress from one point above the wall: by methods that need no training, and by boosted trees.
#pragma once

#include <span>

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

enum class WallMethod {
  profile,      // Reichardt's profile through the point (Newton's method): the log law, down to the wall
  equilibrium,  // the wall equation without pressure gradient and acceleration
  gradients     // the wall equation with both, as measured at the point
};

// Throws Error (diverged) where the wall equation does not settle, near separation; a run counts such points
// and takes the profile there.
// The stress along x from the 16 features of a point at `height` (physics/flow/wall_generator.h).
double wall_stress(WallMethod method, std::span<const float> features, double height, double viscosity);

Entry wall_models();

}  // namespace superstep::baseline
