#include "superstep/physics/chemistry/activity/binding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/physics/chemistry/rings.h"

namespace superstep::data {
namespace {

constexpr int nitrogen = 7, oxygen = 8;

// Powers of ten; chosen so that about one drawn molecule in ten is active at 1 micromol/l.
constexpr double without_contacts = 4.0, hinge = 2.0, ring_in_pocket = 1.6, salt_bridge = 1.4;
// Distances in bonds that the pocket asks for, and how far off is forgiven (a normal's deviation).
constexpr double hinge_bonds = 3, hinge_width = 0.8, ring_bonds = 4, ring_width = 1.0, amine_bonds = 7,
                 amine_width = 1.5;
constexpr double grease_slope = 0.3, most_grease = 4, cost_of_turning = 0.12, cost_of_acid = 0.8,
                 cost_of_atom = 0.1;
constexpr int atoms_with_room = 28;

bool has_order(const Molecule& molecule, int atom, BondOrder order) {
  return std::ranges::any_of(molecule.neighbors(atom), [&](const Molecule::Neighbor& next) {
    return molecule.bond(next.bond).order == order;
  });
}

bool is_unsaturated(const Molecule& molecule, int atom) {
  return molecule.atom(atom).aromatic || has_order(molecule, atom, BondOrder::double_) ||
         has_order(molecule, atom, BondOrder::triple);
}

bool is_acceptor(const Molecule& molecule, int position) {
  const Atom& atom = molecule.atom(position);
  if (atom.charge > 0) return false;
  if (atom.element == oxygen) return true;
  if (atom.element != nitrogen || atom.hydrogens > 0) return false;
  return (atom.aromatic && molecule.degree(position) == 2) ||
         has_order(molecule, position, BondOrder::triple) ||
         (!atom.aromatic && has_order(molecule, position, BondOrder::double_));
}

// A pair that no neighbour draws away.
bool is_basic(const Molecule& molecule, int position) {
  if (molecule.atom(position).element != nitrogen || is_unsaturated(molecule, position)) return false;
  return std::ranges::none_of(molecule.neighbors(position), [&](const Molecule::Neighbor& next) {
    return is_unsaturated(molecule, next.atom);
  });
}

// The hydroxyl of a carboxyl group.
bool is_acid(const Molecule& molecule, int position) {
  const Atom& atom = molecule.atom(position);
  if (atom.element != oxygen || atom.hydrogens == 0 || molecule.degree(position) != 1) return false;
  const int carbon = molecule.neighbors(position)[0].atom;
  return std::ranges::any_of(molecule.neighbors(carbon), [&](const Molecule::Neighbor& next) {
    return molecule.atom(next.atom).element == oxygen && molecule.bond(next.bond).order == BondOrder::double_;
  });
}

// In the manner of S. Wildman and G. Crippen (J. Chem. Inf. Comput. Sci. 39, 868 (1999)), by far fewer kinds.
double lipophilicity_of(const Atom& atom) {
  switch (atom.element) {
    case 6: return atom.aromatic ? 0.25 : 0.20;
    case nitrogen: return -0.60;
    case oxygen: return -0.50;
    case 9: return 0.30;
    case 16: return 0.40;
    case 17: return 0.65;
    case 35: return 0.85;
    default: return 0;
  }
}

bool turns(const Molecule& molecule, const Bond& bond) {
  return bond.order == BondOrder::single && !bond.in_ring && molecule.degree(bond.a) > 1 &&
         molecule.degree(bond.b) > 1;
}

double fit(double distance, double wanted, double width) {
  const double off = (distance - wanted) / width;
  return std::exp(-off * off / 2);
}

// Distances between atoms of one molecule, and from an atom to the nearest of a ring.
class Distances {
 public:
  explicit Distances(const Molecule& molecule)
      : atoms_(static_cast<std::size_t>(molecule.atom_count())), all_(bond_distances(molecule)) {}
  double between(int a, int b) const {
    const int bonds = all_[static_cast<std::size_t>(a) * atoms_ + static_cast<std::size_t>(b)];
    return bonds < 0 ? std::numeric_limits<double>::infinity() : bonds;
  }
  double to(const std::vector<int>& ring, int atom) const {
    double nearest = std::numeric_limits<double>::infinity();
    for (const int each : ring) nearest = std::min(nearest, between(each, atom));
    return nearest;
  }

 private:
  std::size_t atoms_;
  std::vector<int> all_;
};

// 1 for an empty pocket's way, and what each other way to bind weighs beside it.
double ways_to_bind(const Molecule& molecule, const BindingFeatures& features) {
  const Distances distances(molecule);
  double sum = 1;
  for (const int donor : features.donors)
    for (const int acceptor : features.acceptors) {
      if (donor == acceptor) continue;
      const double at_hinge = hinge * fit(distances.between(donor, acceptor), hinge_bonds, hinge_width);
      double amines = 1;
      for (const int amine : features.basic)
        if (amine != donor)
          amines +=
              std::pow(10, salt_bridge * fit(distances.between(acceptor, amine), amine_bonds, amine_width)) -
              1;
      double rings = 1;
      for (const auto& ring : features.aromatic_rings)
        rings += std::pow(10, ring_in_pocket * fit(distances.to(ring, donor), ring_bonds, ring_width)) - 1;
      sum += (std::pow(10, at_hinge) - 1) * amines * rings;
    }
  return sum;
}

}  // namespace

std::vector<int> bond_distances(const Molecule& molecule) {
  const auto atoms = static_cast<std::size_t>(molecule.atom_count());
  std::vector<int> distance(atoms * atoms, -1), reached;
  for (std::size_t start = 0; start < atoms; ++start) {
    int* const row = distance.data() + start * atoms;
    reached = {static_cast<int>(start)};
    row[start] = 0;
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const Molecule::Neighbor& next : molecule.neighbors(reached[i]))
        if (row[next.atom] < 0) row[next.atom] = row[reached[i]] + 1, reached.push_back(next.atom);
  }
  return distance;
}

BindingFeatures binding_features(const Molecule& molecule) {
  BindingFeatures features;
  for (int position = 0; position < molecule.atom_count(); ++position) {
    const Atom& atom = molecule.atom(position);
    if ((atom.element == nitrogen || atom.element == oxygen) && atom.hydrogens > 0)
      features.donors.push_back(position);
    if (is_acceptor(molecule, position)) features.acceptors.push_back(position);
    if (is_basic(molecule, position)) features.basic.push_back(position);
    features.acids += is_acid(molecule, position);
    features.lipophilicity += lipophilicity_of(atom);
  }
  for (const Bond& bond : molecule.bonds()) features.rotatable_bonds += turns(molecule, bond);
  for (Ring& ring : smallest_rings(molecule))
    if (std::ranges::all_of(ring, [&](int atom) { return molecule.atom(atom).aromatic; }))
      features.aromatic_rings.push_back(std::move(ring));
  return features;
}

double binding_exponent(const Molecule& molecule) {
  const BindingFeatures features = binding_features(molecule);
  const int beyond = std::max(0, molecule.atom_count() - atoms_with_room);
  return without_contacts + std::log10(ways_to_bind(molecule, features)) +
         grease_slope * std::min(features.lipophilicity, most_grease) -
         cost_of_turning * features.rotatable_bonds - cost_of_acid * features.acids - cost_of_atom * beyond;
}

}  // namespace superstep::data
