#include "superstep/physics/flow/wall_flow.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/physics/flow/wall_law.h"

namespace superstep::data {
namespace {

constexpr double pi = std::numbers::pi;
// The region in which eddies lie: a little more than where points are drawn.
constexpr double x_low = 2, x_high = 21, z_reach = 3.5, largest_eddy = 0.6, smallest_eddy = 0.06;
constexpr int eddy_count = 200;
constexpr double streak_strength = 0.2, turning_strength = 0.15;  // log of u_tau; rad
constexpr double density_ratio = 1.5;                             // of the coolant at the hole

// Heights and strengths of the jet at a distance from the hole.
double jet_height(double x, double blowing) { return 0.25 + 0.25 * blowing * std::cbrt(x / 10); }
double vortex_speed(double x, double blowing) { return 0.12 * blowing * std::exp(-x / 15); }
constexpr double vortex_distance = 0.45, vortex_core = 0.3;

// Velocity (v, w) of a vortex of unit speed at its core's edge, in the plane across the flow; `turn` is its
// sense.
void add_vortex(double y, double z, double centre_y, double centre_z, double speed, Vector3& velocity) {
  const double dy = (y - centre_y) / vortex_core, dz = (z - centre_z) / vortex_core;
  const double weight = speed * std::exp(0.5 * (1 - dy * dy - dz * dz));
  velocity[1] += weight * dz;
  velocity[2] -= weight * dy;
}

}  // namespace

WallFlow::WallFlow(RandomStream& random, double blowing_ratio) : blowing_(blowing_ratio) {
  constexpr int waves = 24;
  const auto draw = [&](double strength, std::vector<Streak>& into) {
    for (int k = 0; k < waves; ++k)
      into.push_back({2 * pi / 6 * random.normal(), 2 * pi / 0.8 * random.normal(), random.uniform(0, 2 * pi),
                      strength * std::sqrt(2.0 / waves)});
  };
  draw(streak_strength, streaks_);
  draw(turning_strength, turning_);
  for (int k = 0; k < eddy_count; ++k) {
    // Attached to the wall: a centre about a size above it; number density falls with the cube of the size.
    const double u = random.uniform(), a = 1 / (smallest_eddy * smallest_eddy),
                 b = 1 / (largest_eddy * largest_eddy);
    const double size = 1 / std::sqrt(a + u * (b - a));
    eddies_.push_back(
        {{random.uniform(x_low, x_high), size * random.uniform(0.6, 1.2), random.uniform(-z_reach, z_reach)},
         size,
         2 * wall_friction_velocity * random.normal(),
         random.uniform(0, pi)});
  }
}

double WallFlow::sum(const std::vector<Streak>& waves, double x, double z) {
  double value = 0;
  for (const Streak& wave : waves) value += wave.weight * std::cos(wave.kx * x + wave.kz * z + wave.phase);
  return value;
}

double WallFlow::friction(double x, double z) const {
  const double streak = sum(streaks_, x, z) - streak_strength * streak_strength / 2;
  // Below the jet the wall is sheltered in the middle and scrubbed at the sides of the vortices.
  const double side = std::abs(z) / vortex_distance;
  const double jet = vortex_speed(x, blowing_) * (side * side - 1) * std::exp(-side * side / 2);
  return wall_friction_velocity * std::exp(streak) * std::max(0.3, 1 + 2 * jet);
}

double WallFlow::direction(double x, double z) const {
  // The vortices sweep fluid along the wall towards the middle.
  const double side = z / vortex_distance;
  return sum(turning_, x, z) - 2 * vortex_speed(x, blowing_) * side * std::exp(-side * side / 2);
}

double WallFlow::coolant(const Vector3& p) const {
  const double dy = (p[1] - jet_height(p[0], blowing_)) / 0.35, dz = p[2] / 0.55;
  return std::exp(-p[0] / 12 - dy * dy - dz * dz);
}

double WallFlow::density(const Vector3& p) const {
  return 1 + (density_ratio - 1) * std::min(1.0, 1.2 * blowing_ * coolant(p));
}

double WallFlow::shear_stress(double x, double z) const {
  const double u = friction(x, z);
  return density({x, 0, z}) * u * u * std::cos(direction(x, z));
}

Vector3 WallFlow::velocity(const Vector3& p) const {
  const double u_tau = friction(p[0], p[2]), angle = direction(p[0], p[2]);
  const double mean = std::min(1.1, u_tau * reichardt(p[1] * u_tau / wall_viscosity));
  const double speed = mean * (1 - 0.35 * std::min(1.0, blowing_) * coolant(p));
  // The flow turns into the free stream's direction with the height.
  const double turned = angle * std::exp(-p[1] / 0.5);
  Vector3 velocity{speed * std::cos(turned), 0, speed * std::sin(turned)};
  for (const Eddy& eddy : eddies_) {
    const double dx = (p[0] - eddy.centre[0]) / (1.5 * eddy.size), dy = (p[1] - eddy.centre[1]) / eddy.size,
                 dz = (p[2] - eddy.centre[2]) / eddy.size;
    const double distance = dx * dx + dy * dy + dz * dz;
    if (distance > 40) continue;
    // Rotation about an axis in the plane of the wall; nothing moves through the wall.
    const double weight = eddy.speed * std::exp(-distance / 2) * (1 - std::exp(-p[1] / (0.3 * eddy.size)));
    velocity[0] += weight * dy * std::cos(eddy.tilt);
    velocity[1] -= weight * (dx * std::cos(eddy.tilt) - dz * std::sin(eddy.tilt));
    velocity[2] -= weight * dy * std::sin(eddy.tilt);
  }
  const double vortex = vortex_speed(p[0], blowing_) * (1 - std::exp(-p[1] / 0.1)),
               height = jet_height(p[0], blowing_);
  add_vortex(p[1], p[2], height, vortex_distance, -vortex, velocity);
  add_vortex(p[1], p[2], height, -vortex_distance, vortex, velocity);
  return velocity;
}

WallPoint WallFlow::at(const Vector3& position) const {
  constexpr double step = 1e-4;
  WallPoint point;
  point.velocity = velocity(position);
  point.density = density(position);
  for (std::size_t j = 0; j < 3; ++j) {
    Vector3 up = position, down = position;
    up[j] += step, down[j] -= step;
    const Vector3 above = velocity(up), below = velocity(down);
    for (std::size_t i = 0; i < 3; ++i) point.gradient[i][j] = (above[i] - below[i]) / (2 * step);
  }
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      point.pressure_gradient[i] -= point.density * point.velocity[j] * point.gradient[i][j];
  return point;
}

}  // namespace superstep::data
