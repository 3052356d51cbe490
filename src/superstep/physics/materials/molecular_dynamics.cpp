#include "superstep/physics/materials/molecular_dynamics.h"

#include <algorithm>
#include <cmath>

#include "superstep/physics/materials/atomic_units.h"

namespace superstep::data {
namespace {

void rest_centre_of_mass(MotionState& state) {
  Cartesian momentum;
  double mass = 0;
  for (std::size_t i = 0; i < state.masses.size(); ++i) {
    momentum += state.masses[i] * state.velocities[i];
    mass += state.masses[i];
  }
  for (Cartesian& velocity : state.velocities) velocity -= momentum * (1 / mass);
}

void evaluate(MotionState& state, ForceField field) {
  state.potential_energy = field(state.positions, state.forces);
}

double thermal_speed(double kelvin, double mass) {
  return std::sqrt(boltzmann_ev_per_kelvin * kelvin * acceleration_unit / mass);
}

Cartesian normal_vector(RandomStream& random) {
  const double x = random.normal(), y = random.normal(), z = random.normal();
  return {x, y, z};
}

double largest_force(const MotionState& state) {
  double largest = 0;
  for (const Cartesian& force : state.forces) largest = std::max(largest, dot(force, force));
  return std::sqrt(largest);
}

// The state of FIRE between steps; the constants are the paper's.
struct Fire {
  double step = 0.5, mixing = 0.1;  // fs
  int downhill = 0;

  // Turns velocities towards the forces while the motion goes downhill, stops it when it does not.
  void steer(MotionState& state) {
    constexpr double largest_step = 2.0, faster = 1.1, slower = 0.5, first_mixing = 0.1, less_mixing = 0.99;
    constexpr int patience = 5;
    double power = 0, speed = 0, force = 0;
    for (std::size_t i = 0; i < state.forces.size(); ++i) {
      power += dot(state.forces[i], state.velocities[i]);
      speed += dot(state.velocities[i], state.velocities[i]);
      force += dot(state.forces[i], state.forces[i]);
    }
    if (power > 0) {
      const double scale = force > 0 ? mixing * std::sqrt(speed / force) : 0;
      for (std::size_t i = 0; i < state.forces.size(); ++i)
        state.velocities[i] = (1 - mixing) * state.velocities[i] + scale * state.forces[i];
      if (++downhill <= patience) return;
      step = std::min(step * faster, largest_step);
      mixing *= less_mixing;
    } else {
      std::ranges::fill(state.velocities, Cartesian{});
      step *= slower;
      mixing = first_mixing;
      downhill = 0;
    }
  }
};

// No atom may jump: packings can start with very large forces.
void limited_drift(MotionState& state, double femtoseconds) {
  constexpr double longest = 0.1;  // A
  for (std::size_t i = 0; i < state.positions.size(); ++i) {
    Cartesian move = femtoseconds * state.velocities[i];
    const double length = norm(move);
    if (length > longest) {
      move *= longest / length;
      state.velocities[i] *= longest / length;
    }
    state.positions[i] += move;
  }
}

}  // namespace

MotionState start_motion(std::vector<double> masses, std::vector<Cartesian> positions, double kelvin,
                         RandomStream& random, ForceField field) {
  MotionState state{std::move(masses), std::move(positions), {}, {}, 0};
  for (const double mass : state.masses)
    state.velocities.push_back(thermal_speed(kelvin, mass) * normal_vector(random));
  state.forces.resize(state.positions.size());
  if (!state.masses.empty()) rest_centre_of_mass(state);
  evaluate(state, field);
  return state;
}

double kinetic_energy(const MotionState& state) {
  double twice = 0;
  for (std::size_t i = 0; i < state.masses.size(); ++i)
    twice += state.masses[i] * dot(state.velocities[i], state.velocities[i]);
  return twice / (2 * acceleration_unit);
}

double temperature(const MotionState& state) {
  const double freedoms = 3.0 * static_cast<double>(state.masses.size()) - 3;
  return freedoms > 0 ? 2 * kinetic_energy(state) / (freedoms * boltzmann_ev_per_kelvin) : 0;
}

void kick(MotionState& state, double femtoseconds) {
  for (std::size_t i = 0; i < state.masses.size(); ++i)
    state.velocities[i] += state.forces[i] * (femtoseconds * acceleration_unit / state.masses[i]);
}

void drift(MotionState& state, double femtoseconds) {
  for (std::size_t i = 0; i < state.masses.size(); ++i)
    state.positions[i] += femtoseconds * state.velocities[i];
}

void verlet_step(MotionState& state, double femtoseconds, ForceField field) {
  kick(state, femtoseconds / 2);
  drift(state, femtoseconds);
  evaluate(state, field);
  kick(state, femtoseconds / 2);
}

void langevin_step(MotionState& state, double femtoseconds, double kelvin, double friction,
                   RandomStream& random, ForceField field) {
  kick(state, femtoseconds / 2);
  drift(state, femtoseconds / 2);
  const double kept = std::exp(-friction * femtoseconds), renewed = std::sqrt(1 - kept * kept);
  for (std::size_t i = 0; i < state.masses.size(); ++i)
    state.velocities[i] =
        kept * state.velocities[i] + renewed * thermal_speed(kelvin, state.masses[i]) * normal_vector(random);
  drift(state, femtoseconds / 2);
  evaluate(state, field);
  kick(state, femtoseconds / 2);
}

double relax(MotionState& state, double force_limit, int most_steps, ForceField field) {
  std::ranges::fill(state.velocities, Cartesian{});
  evaluate(state, field);
  Fire fire;
  for (int step = 1; step < most_steps && largest_force(state) > force_limit; ++step) {
    fire.steer(state);
    kick(state, fire.step);
    limited_drift(state, fire.step);
    evaluate(state, field);
  }
  return largest_force(state);
}

}  // namespace superstep::data
