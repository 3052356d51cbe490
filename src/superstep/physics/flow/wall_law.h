// Turbulent flow along a wall, one-dimensional: the mean velocity profile and the equation behind it.
//
// Any consistent units; the examples take lengths in hole diameters, velocities and densities of the free
// stream. The friction velocity is u_tau = sqrt(tau / rho); y+ = y u_tau / nu, u+ = u / u_tau.
#pragma once

#include <vector>

namespace superstep::data {

// H. Reichardt's profile: u+ = ln(1 + 0.4 y+) / 0.4 + 7.8 (1 - exp(-y+/11) - (y+/11) exp(-0.33 y+)).
double reichardt(double y_plus);
double reichardt_slope(double y_plus);  // du+/dy+

// The friction velocity for which the profile has the velocity `speed` at `height` (Newton's method). 0 for a
// speed of 0. Throws Error (invalid_argument) on arguments that are negative or not finite.
double friction_velocity(double speed, double height, double viscosity);

// The flow between the wall (at rest) and a point at `height` above it.
struct WallColumn {
  double height = 0.1;
  double speed = 0;  // at that point
  double density = 1;
  double viscosity = 1.0 / 15000;  // kinematic
  double pressure_gradient = 0;    // dp/dx
  double acceleration = 0;         // du/dx at the point; convection is rho du/dx u^2 / speed
};

struct WallProfile {
  double shear_stress = 0;     // at the wall
  double slope_at_height = 0;  // du/dy at the upper point
  std::vector<double> y, u;    // nodes from the wall to the point
  int iterations = 0;
};

// Solves d/dy [(mu + mu_t) du/dy] = dp/dx + convection with mu_t = 0.4 rho y sqrt(tau/rho)
// (1 - exp(-y+/17))^2 on a grid that is finer at the wall: the equations of a guessed stress by the Thomas
// algorithm, until the stress is its own guess. With no pressure gradient and no acceleration this is the
// equilibrium wall model. An adverse gradient above about half of stress over height separates the flow:
// near that the equation has two solutions, and the stress may be negative. Throws Error (diverged) when the
// stress does not settle.
WallProfile solve_wall_column(const WallColumn& column, int cells = 48);

}  // namespace superstep::data
