#include "superstep/physics/chemistry/scaffold.h"

#include "superstep/physics/chemistry/smiles.h"

namespace superstep::data {
namespace {

// Hydrogens that stand in for a neighbour that was cut off.
int hydrogens_for(BondOrder order) {
  switch (order) {
    case BondOrder::double_: return 2;
    case BondOrder::triple: return 3;
    case BondOrder::quadruple: return 4;
    default: return 1;
  }
}

// Which atoms stay: those with fewer than two neighbours go, until there are none.
std::vector<bool> without_ends(const Molecule& molecule) {
  std::vector<bool> stays(molecule.atoms().size(), true);
  std::vector<int> left(molecule.atoms().size()), ends;
  for (int atom = 0; atom < molecule.atom_count(); ++atom) {
    left[static_cast<std::size_t>(atom)] = molecule.degree(atom);
    if (molecule.degree(atom) < 2) ends.push_back(atom);
  }
  while (!ends.empty()) {
    const int atom = ends.back();
    ends.pop_back();
    if (!stays[static_cast<std::size_t>(atom)]) continue;
    stays[static_cast<std::size_t>(atom)] = false;
    for (const Molecule::Neighbor& next : molecule.neighbors(atom))
      if (stays[static_cast<std::size_t>(next.atom)] && --left[static_cast<std::size_t>(next.atom)] < 2)
        ends.push_back(next.atom);
  }
  return stays;
}

}  // namespace

Molecule scaffold(const Molecule& molecule) {
  const std::vector<bool> stays = without_ends(molecule);
  const auto is_left = [&](int atom) { return stays[static_cast<std::size_t>(atom)]; };
  Molecule frame;
  std::vector<int> place(stays.size(), -1);
  for (int atom = 0; atom < molecule.atom_count(); ++atom) {
    if (!is_left(atom)) continue;
    Atom kept = molecule.atom(atom);
    for (const Molecule::Neighbor& next : molecule.neighbors(atom))
      if (!is_left(next.atom)) kept.hydrogens += hydrogens_for(molecule.bond(next.bond).order);
    place[static_cast<std::size_t>(atom)] = frame.add_atom(kept);
  }
  for (const Bond& bond : molecule.bonds())
    if (is_left(bond.a) && is_left(bond.b))
      frame.add_bond(place[static_cast<std::size_t>(bond.a)], place[static_cast<std::size_t>(bond.b)],
                     bond.order);
  frame.perceive();
  return frame;
}

std::string scaffold_smiles(const Molecule& molecule) { return canonical_smiles(scaffold(molecule)); }

}  // namespace superstep::data
