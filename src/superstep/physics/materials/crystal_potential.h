// Potentials of face-centred cubic crystals behind one interface: what molecular dynamics and its generator
// need to know of a material.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/physics/materials/sutton_chen.h"

namespace superstep::data {

class CrystalPotential {
 public:
  virtual ~CrystalPotential() = default;
  virtual double lattice() const = 0;  // of the crystal at rest, A
  // Symbols, and the share of the atoms that each has; the first come first in a configuration.
  virtual std::vector<std::string> symbols() const = 0;
  virtual std::vector<double> shares() const { return {1}; }
  virtual double low_kelvin() const { return 300; }  // between which frames are usually taken
  virtual double high_kelvin() const { return 1500; }
  // `types`: the place of each atom's element in symbols().
  virtual Evaluation evaluate(const SmoothCutoff& cutoff, std::span<const Cartesian> positions,
                              std::span<const int> types, std::span<const NeighborPair> pairs) const = 0;
  virtual nlohmann::json parameters() const = 0;
};

// One of the seven metals of Sutton and Chen by its symbol; "Ar", Lennard-Jones argon (eps 0.0103 eV, sigma
// 3.405 A); "Cu-Morse", copper by a Morse pair potential (L. Girifalco and V. Weizer, Phys. Rev. 114, 687
// (1959)); "NiCu", the alloy of the two Sutton-Chen metals with mixed pairs by H. Rafii-Tabar and A. P.
// Sutton, Phil. Mag. Lett. 63, 217 (1991), `nickel` of its atoms nickel, between 0 and 1 (0 and 1 excluded).
// Throws Error (invalid_argument) with the nearest name.
std::unique_ptr<CrystalPotential> make_crystal_potential(std::string_view name, double nickel = 0.5);

}  // namespace superstep::data
