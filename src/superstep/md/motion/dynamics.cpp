#include "superstep/md/motion/dynamics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/md/motion/baths.h"
#include "superstep/physics/materials/atomic_units.h"

namespace superstep::md {
namespace {

constexpr double one_place = 0.1;  // A: no two nuclei are nearer in matter

double trace(const std::array<double, 9>& virial) { return virial[0] + virial[4] + virial[8]; }

bool is_finite(const Evaluation& found) {
  return std::isfinite(found.energy) && std::ranges::all_of(found.forces, [](const Cartesian& f) {
           return std::isfinite(f.x) && std::isfinite(f.y) && std::isfinite(f.z);
         });
}

}  // namespace

void require_apart(std::span<const Cartesian> positions, const std::optional<Cell>& cell, ThreadPool& pool) {
  Neighbours near(1, one_place);
  near.update(positions, cell, pool);
  const double *const x = near.x(), *const y = near.y(), *const z = near.z();
  for (std::size_t i = 0; i < near.atoms(); ++i)
    for (const std::int32_t place : near.of(i)) {
      const double dx = x[place] - x[i], dy = y[place] - y[i], dz = z[place] - z[i];
      const double apart = std::sqrt(dx * dx + dy * dy + dz * dz);
      if (apart < one_place)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("atoms {} and {} are at one place, {:.3g} A apart", i + 1,
                                near.owners()[static_cast<std::size_t>(place)] + 1, apart),
                    "the structure", "atoms are counted from 1, in the order of the file");
    }
}

Dynamics::Dynamics(ForceField& field, const Protocol& protocol, double skin, ThreadPool& pool)
    : field_(field), protocol_(protocol), pool_(pool) {
  if (field.cutoff() > 0) neighbours_ = std::make_unique<Neighbours>(field.cutoff(), skin, field.molecules());
}

double Dynamics::evaluate(State& state, std::span<const Cartesian> positions, std::span<Cartesian> forces,
                          bool with_virial) {
  const Stopwatch search;
  if (neighbours_) neighbours_->update(positions, state.cell, pool_);
  neighbour_seconds_ += search.seconds();
  const Stopwatch watch;
  field_.evaluate({positions, state.cell, neighbours_ ? *neighbours_ : unused_, pool_, with_virial}, now_);
  force_seconds_ += watch.seconds();
  std::ranges::copy(now_.forces, forces.begin());
  state.virial = now_.virial;
  return now_.energy;
}

void Dynamics::begin(State& state) {
  require_apart(state.motion.positions, state.cell, pool_);
  state.motion.forces.assign(state.motion.positions.size(), {});
  state.motion.potential_energy = evaluate(state, state.motion.positions, state.motion.forces, true);
  if (!is_finite(now_))
    throw Error(ErrorCode::invalid_argument, "energy or forces of the start are not finite", "the structure");
}

void Dynamics::go_on(const State& state, Neighbours::Origin origin) {
  if (!neighbours_) return;
  neighbours_->rebuild(std::move(origin), pool_);
  neighbours_->update(state.motion.positions, state.cell, pool_);
}

double Dynamics::freedoms(const State& state) const {
  const double all = 3 * static_cast<double>(state.motion.masses.size());
  const bool free_centre = protocol_.ensemble != Ensemble::nve && protocol_.bath == Bath::langevin;
  return free_centre ? all : std::max(all - 3, 0.0);
}

void Dynamics::require_small_moves(const State& state, double femtoseconds) const {
  const double limit = most_moved * most_moved / (femtoseconds * femtoseconds);
  for (std::size_t i = 0; i < state.motion.velocities.size(); ++i) {
    const Cartesian& v = state.motion.velocities[i];
    if (!(dot(v, v) <= limit))
      throw Error(ErrorCode::diverged, fmt::format("step {} would move atom {} by {:.3g} A", state.step + 1,
                                                   i + 1, norm(v) * femtoseconds));
  }
}

// Positions and box are stretched, velocities slowed down. Returns the change of ln(volume).
double Dynamics::scale_box(State& state, double pressure) {
  RandomStream random(protocol_.seed, static_cast<std::uint64_t>(state.step), purpose::barostat);
  const double change = volume_step(protocol_, pressure, std::abs(state.cell->volume()), random);
  constexpr double most_change = 0.1;  // of ln(volume) in a step: beyond it nothing physical happens
  if (!(std::abs(change) < most_change))
    throw Error(ErrorCode::diverged,
                fmt::format("step {} would change the volume by {:.3g} of itself", state.step + 1, change));
  const double scale = std::exp(change / 3), before = data::kinetic_energy(state.motion);
  state.cell = Cell{scale * state.cell->a, scale * state.cell->b, scale * state.cell->c};
  for (Cartesian& r : state.motion.positions) r *= scale;
  for (Cartesian& v : state.motion.velocities) v *= 1 / scale;
  state.bath_energy += data::kinetic_energy(state.motion) - before;
  return change;
}

void Dynamics::apply_bath(State& state) {
  const auto number = static_cast<std::uint64_t>(state.step);
  const double before = data::kinetic_energy(state.motion);
  const double kept = std::exp(-protocol_.timestep / protocol_.bath_time);
  if (protocol_.bath == Bath::langevin) {
    refresh_velocities(state.motion, kept, protocol_.kelvin, protocol_.seed, number, pool_);
  } else {
    RandomStream random(protocol_.seed, number, purpose::heat_bath);
    const double target = freedoms(state) / 2 * data::boltzmann_ev_per_kelvin * protocol_.kelvin;
    const double factor = rescaling_factor(before, target, freedoms(state), kept, random);
    for (Cartesian& v : state.motion.velocities) v *= factor;
  }
  state.bath_energy += data::kinetic_energy(state.motion) - before;
}

void Dynamics::step(State& state, bool measured) {
  const double dt = protocol_.timestep;
  const bool scaled = protocol_.ensemble == Ensemble::npt;
  const double pressure = scaled ? read(state).pressure : 0, virial = trace(state.virial);
  data::kick(state.motion, dt / 2);
  require_small_moves(state, dt);
  double change = 0;
  if (scaled) {
    data::drift(state.motion, dt / 2);
    change = scale_box(state, pressure);
    data::drift(state.motion, dt / 2);
  } else {
    data::drift(state.motion, dt);
  }
  state.motion.potential_energy =
      evaluate(state, state.motion.positions, state.motion.forces, measured || scaled);
  // Work of the barostat on the potential energy: dE/d(ln V) is minus a third of the virial's trace.
  if (scaled) state.bath_energy -= (virial + trace(state.virial)) / 6 * change;
  data::kick(state.motion, dt / 2);
  if (protocol_.ensemble != Ensemble::nve) apply_bath(state);
  ++state.step;
  if (!std::isfinite(state.motion.potential_energy))
    throw Error(ErrorCode::diverged, fmt::format("the energy is not finite after step {}", state.step));
}

Reading Dynamics::read(const State& state) const {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  Reading reading{.pressure = none, .volume = none};
  reading.kinetic = data::kinetic_energy(state.motion);
  reading.potential = state.motion.potential_energy;
  reading.conserved = reading.kinetic + reading.potential - state.bath_energy;
  const double count = freedoms(state);
  if (count > 0) reading.temperature = 2 * reading.kinetic / (count * data::boltzmann_ev_per_kelvin);
  if (!state.cell) return reading;
  reading.volume = std::abs(state.cell->volume());
  if (field_.gives_virial())
    reading.pressure = (2 * reading.kinetic + trace(state.virial)) / (3 * reading.volume);
  return reading;
}

double Dynamics::relax(State& state, double limit, int most) {
  const double left = data::relax(state.motion, limit, most, [&](auto positions, auto forces) {
    return evaluate(state, positions, forces, false);
  });
  std::ranges::fill(state.motion.velocities, Cartesian{});
  return left;
}

}  // namespace superstep::md
