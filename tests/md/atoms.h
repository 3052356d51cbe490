// Atoms to test with, and force fields evaluated once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/file/atoms/element.h"
#include "superstep/md/forces/potentials.h"
#include "superstep/md/motion/dynamics.h"
#include "superstep/md/start/structures.h"

namespace superstep::md {

inline data::Configuration rattled(data::Configuration atoms, double sd, std::uint64_t seed) {
  RandomStream random(seed);
  for (Cartesian& p : atoms.positions) p += sd * Cartesian{random.normal(), random.normal(), random.normal()};
  return atoms;
}

// A potential of the table with some of its options.
inline std::unique_ptr<ForceField> field_of(const std::string& name, data::Configuration& atoms,
                                            const std::vector<std::string>& settings = {}) {
  const Potential& potential = *find_potential(name);
  return potential.make(Options(potential.options, settings), atoms);
}

inline Evaluation evaluated(ForceField& field, const std::vector<Cartesian>& positions,
                            const std::optional<Cell>& cell, int threads = 1, double skin = 0.5) {
  ThreadPool pool(threads);
  Neighbours neighbours(field.cutoff() > 0 ? field.cutoff() : 1, skin, field.molecules());
  neighbours.update(positions, cell, pool);
  Evaluation result;
  field.evaluate({positions, cell, neighbours, pool, true}, result);
  return result;
}
inline Evaluation evaluated(ForceField& field, const data::Configuration& atoms, int threads = 1) {
  return evaluated(field, atoms.positions, atoms.cell, threads);
}

inline std::vector<double> masses_of(const data::Configuration& atoms) {
  std::vector<double> masses;
  for (const int element : atoms.elements) masses.push_back(data::element_mass(element));
  return masses;
}

// At rest, or with velocities of a temperature; evaluated.
inline State started(Dynamics& dynamics, const data::Configuration& atoms, double kelvin,
                     std::uint64_t seed = 1) {
  State state;
  RandomStream random(seed);
  state.motion =
      data::start_motion(masses_of(atoms), atoms.positions, kelvin, random, [](auto, auto) { return 0.0; });
  state.cell = atoms.cell;
  dynamics.begin(state);
  return state;
}

}  // namespace superstep::md
