// A molecule as a graph: heavy atoms with their hydrogens counted, and bonds.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace superstep::data {

struct Atom {
  int element = 0;  // atomic number; 0 for `*`, an atom that is not known (the cut end of a repeat unit)
  int hydrogens = 0;
  int charge = 0;
  int isotope = 0;  // 0: the natural mixture
  bool aromatic = false;
  bool in_ring = false;
};

enum class BondOrder { single, double_, triple, quadruple, aromatic };

struct Bond {
  int a = 0, b = 0;  // positions of the atoms
  BondOrder order = BondOrder::single;
  bool in_ring = false;
  bool conjugated = false;  // aromatic, or a single bond between two unsaturated atoms
};

class Molecule {
 public:
  struct Neighbor {
    int atom, bond;
  };

  int add_atom(const Atom& atom);  // returns its position
  // Joins two different atoms that are there and not yet joined.
  int add_bond(int a, int b, BondOrder order);

  const std::vector<Atom>& atoms() const { return atoms_; }
  const std::vector<Bond>& bonds() const { return bonds_; }
  std::span<const Neighbor> neighbors(int atom) const { return neighbors_[static_cast<std::size_t>(atom)]; }
  const Atom& atom(int position) const { return atoms_[static_cast<std::size_t>(position)]; }
  Atom& atom(int position) { return atoms_[static_cast<std::size_t>(position)]; }
  const Bond& bond(int position) const { return bonds_[static_cast<std::size_t>(position)]; }
  Bond& bond(int position) { return bonds_[static_cast<std::size_t>(position)]; }
  int atom_count() const { return static_cast<int>(atoms_.size()); }
  int bond_count() const { return static_cast<int>(bonds_.size()); }
  int degree(int atom) const { return static_cast<int>(neighbors(atom).size()); }
  // The bond between two atoms, or -1.
  int bond_between(int a, int b) const;

  // Marks rings on atoms and bonds and conjugation on bonds; call after the last change.
  void perceive();

 private:
  std::vector<Atom> atoms_;
  std::vector<Bond> bonds_;
  std::vector<std::vector<Neighbor>> neighbors_;
};

double molecular_weight(const Molecule& molecule);  // g/mol, natural isotopes; `*` weighs nothing
// Hill order: C, H, then the rest by symbol ("C8H8", "H2O"); `*` is left out.
std::string molecular_formula(const Molecule& molecule);

// The part each atom belongs to, numbered from 0 by first atom; `kept` says which bonds join (all of them
// when empty).
std::vector<int> connected_parts(const Molecule& molecule, const std::vector<bool>& kept = {});

// True for each bond that lies on a cycle of the graph whose bonds are `kept` (all when empty).
std::vector<bool> bonds_on_cycles(const Molecule& molecule, const std::vector<bool>& kept = {});

}  // namespace superstep::data
