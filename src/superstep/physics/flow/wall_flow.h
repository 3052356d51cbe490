// A model of the flow behind a film-cooling hole: a boundary layer with streaks and eddies, the pair of
// counter-rotating vortices of the jet, and its coolant.
//
// Lengths in hole diameters, velocities and density of the free stream; x along the wall from the hole, y
// from the wall, z across. A kinematic model: it has the features of such flows, not their dynamics.
#pragma once

#include <array>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::data {

using Vector3 = std::array<double, 3>;

inline constexpr double wall_viscosity = 1.0 / 15000;
inline constexpr double wall_friction_velocity = 0.05;  // mean

struct WallPoint {
  Vector3 velocity{};
  std::array<Vector3, 3> gradient{};  // gradient[i][j] = d velocity[i] / d x[j]
  Vector3 pressure_gradient{};        // of steady flow without friction: -rho (u . grad) u
  double density = 1;
};

// One snapshot of the flow; a function of the stream and the blowing ratio.
class WallFlow {
 public:
  WallFlow(RandomStream& random, double blowing_ratio);

  WallPoint at(const Vector3& position) const;
  // The friction velocity below (x, z): mean 0.05 with log-normal streaks along x.
  double friction(double x, double z) const;
  double direction(double x, double z) const;  // of the stress at the wall, rad from x towards z
  // tau = rho u_tau^2 cos(direction).
  double shear_stress(double x, double z) const;

 private:
  struct Streak {
    double kx, kz, phase, weight;
  };
  struct Eddy {
    Vector3 centre;
    double size, speed, tilt;
  };
  static double sum(const std::vector<Streak>& waves, double x, double z);
  Vector3 velocity(const Vector3& position) const;
  double density(const Vector3& position) const;
  double coolant(const Vector3& position) const;

  double blowing_;
  std::vector<Streak> streaks_, turning_;
  std::vector<Eddy> eddies_;
};

}  // namespace superstep::data
