// Molecules as the arrays that graph networks take: a row of numbers an atom and a bond.
#pragma once

#include <cstdint>
#include <span>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::data {

// 36 an atom: element one-hot (*, B, C, N, O, F, Si, P, S, Cl, Br, I, other), degree one-hot (0 to 5 and
// more), hydrogens one-hot (0 to 4 and more), sign of the charge one-hot (-, 0, +), aromatic, hybridisation
// one-hot (s, sp, sp2, sp3, sp3d, sp3d2 by the count of neighbours and the order of bonds), in a ring,
// mass / 100 g/mol.
inline constexpr int atom_feature_count = 36;
// 6 a bond: single, double, triple, aromatic; conjugated; in a ring.
inline constexpr int bond_feature_count = 6;

void fill_atom_features(const Molecule& molecule, int atom, std::span<float, atom_feature_count> features);
void fill_bond_features(const Molecule& molecule, int bond, std::span<float, bond_feature_count> features);

// A molecule in arrays of fixed size, the unused end left as it is. Every bond makes two edges, there and
// back, so that edges = 2 bonds.
struct GraphArrays {
  std::span<float> x;                  // [capacity of atoms, 36]
  std::span<std::int32_t> edge_index;  // [2, capacity of edges]: sources, then targets
  std::span<float> edge_attr;          // [capacity of edges, 6]
  int atom_capacity = 0, edge_capacity = 0;
};
// Throws Error (invalid_argument) when the molecule is larger than the arrays.
void fill_graph(const Molecule& molecule, const GraphArrays& arrays);

}  // namespace superstep::data
