// How well a molecule fits a made-up pocket of a protein: what it must offer, and how far apart.
#pragma once

#include <vector>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::data {

// Lengths of the shortest ways between two atoms, in bonds: row i of atoms x atoms; -1 where there is none.
std::vector<int> bond_distances(const Molecule& molecule);

// What of a molecule the pocket can hold.
struct BindingFeatures {
  std::vector<int> donors;     // N or O with a hydrogen
  std::vector<int> acceptors;  // O, and N with a free pair: pyridines, nitriles, imines
  std::vector<int> basic;      // amines
  std::vector<std::vector<int>> aromatic_rings;
  int acids = 0;
  int rotatable_bonds = 0;
  double lipophilicity = 0;  // a logarithm of octanol over water, by atoms
};
BindingFeatures binding_features(const Molecule& molecule);

// -log10 of the dissociation constant in mol/l. The constant of association is a sum over the ways to bind,
// as statistical mechanics has it: a donor and an acceptor three bonds apart that both reach the hinge, an
// aromatic ring four bonds away in the pocket, an amine seven bonds away at an acid, or not. Grease binds up
// to a limit; turning bonds, acids and atoms beyond 28 cost.
double binding_exponent(const Molecule& molecule);

}  // namespace superstep::data
