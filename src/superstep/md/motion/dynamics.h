// Atoms in motion: a state, and the step that takes it on by the rules of a protocol.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "superstep/md/forces/force_field.h"
#include "superstep/md/motion/protocol.h"
#include "superstep/physics/materials/molecular_dynamics.h"

namespace superstep::md {

// All that the next step follows from, together with the origin of the neighbour lists. Positions are not
// brought back into the box: how far an atom has come can be read off.
struct State {
  std::int64_t step = 0;
  data::MotionState motion;
  std::optional<Cell> cell;
  std::array<double, 9> virial{};  // eV
  double bath_energy = 0;          // eV that baths have given to the atoms so far
};

// What thermometers and gauges show.
struct Reading {
  double temperature = 0;  // K
  double pressure = 0;     // eV/A^3; NaN in open space, and where the force field gives no virial
  double potential = 0, kinetic = 0, conserved = 0;  // eV
  double volume = 0;                                 // A^3; NaN in open space
};

// Throws Error (invalid_argument) where two atoms are at one place, by their numbers from 1.
void require_apart(std::span<const Cartesian> positions, const std::optional<Cell>& cell, ThreadPool& pool);

class Dynamics {
 public:
  // `field` and `pool` live longer.
  Dynamics(ForceField& field, const Protocol& protocol, double skin, ThreadPool& pool);

  // Evaluates a state that has positions, masses and velocities alone. Throws Error (invalid_argument): two
  // atoms at one place, by their numbers; forces that are not finite.
  void begin(State& state);
  // Goes on from a state whose forces are known, with the lists that were made of `origin`.
  void go_on(const State& state, Neighbours::Origin origin);

  // One step. `measured`: the virial is wanted after it. Throws Error (diverged) where an atom would move
  // more than most_moved in it or a number is not finite; the state is then of no use.
  void step(State& state, bool measured);
  static constexpr double most_moved = 1;  // A

  Reading read(const State& state) const;
  // Moves downhill until no force is above `limit` (eV/A), or for `most` evaluations; returns the largest
  // left.
  double relax(State& state, double limit, int most);

  const Neighbours* neighbours() const { return neighbours_.get(); }  // null where the field wants none
  const Protocol& protocol() const { return protocol_; }
  double freedoms(const State& state) const;

  // Seconds in the force field and in the search for neighbours so far.
  double force_seconds() const { return force_seconds_; }
  double neighbour_seconds() const { return neighbour_seconds_; }

 private:
  double evaluate(State& state, std::span<const Cartesian> positions, std::span<Cartesian> forces,
                  bool with_virial);
  void require_small_moves(const State& state, double femtoseconds) const;
  double scale_box(State& state, double pressure);
  void apply_bath(State& state);

  ForceField& field_;
  Protocol protocol_;
  ThreadPool& pool_;
  std::unique_ptr<Neighbours> neighbours_;
  Neighbours unused_{1, 1};
  Evaluation now_;
  double force_seconds_ = 0, neighbour_seconds_ = 0;
};

}  // namespace superstep::md
