#include "superstep/physics/chemistry/molecule_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/base/error.h"
#include "superstep/file/atoms/element.h"

namespace superstep::data {
namespace {

constexpr std::array<int, 12> listed_elements = {0, 5, 6, 7, 8, 9, 14, 15, 16, 17, 35, 53};
constexpr int degrees = 6, hydrogen_counts = 5, hybridisations = 6;

int element_class(int element) {
  return static_cast<int>(std::ranges::find(listed_elements, element) - listed_elements.begin());
}

// 0 s, 1 sp, 2 sp2, 3 sp3, 4 sp3d, 5 sp3d2.
int hybridisation(const Molecule& molecule, int atom) {
  int doubles = 0, triples = 0, aromatic = 0;
  for (const Molecule::Neighbor& neighbor : molecule.neighbors(atom)) {
    const BondOrder order = molecule.bond(neighbor.bond).order;
    doubles += order == BondOrder::double_;
    triples += order == BondOrder::triple || order == BondOrder::quadruple;
    aromatic += order == BondOrder::aromatic;
  }
  const int partners = molecule.degree(atom) + molecule.atom(atom).hydrogens;
  if (partners > 4) return partners == 5 ? 4 : 5;
  if (partners == 4) return 3;
  if (triples > 0 || doubles > 1) return 1;
  if (doubles > 0 || aromatic > 0) return 2;
  return molecule.atom(atom).element <= 1 ? 0 : 3;
}

void refuse_size(int found, int capacity, const char* what) {
  if (found > capacity)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the molecule has {} {}, there is room for {}", found, what, capacity));
}

}  // namespace

void fill_atom_features(const Molecule& molecule, int position,
                        std::span<float, atom_feature_count> features) {
  const Atom& atom = molecule.atom(position);
  std::ranges::fill(features, 0.0f);
  std::size_t block = 0;
  const auto one_hot = [&](int place, int size) {
    features[block + static_cast<std::size_t>(std::clamp(place, 0, size - 1))] = 1;
    block += static_cast<std::size_t>(size);
  };
  one_hot(element_class(atom.element), static_cast<int>(listed_elements.size()) + 1);
  one_hot(molecule.degree(position), degrees);
  one_hot(atom.hydrogens, hydrogen_counts);
  one_hot(1 + std::clamp(atom.charge, -1, 1), 3);
  features[block++] = atom.aromatic ? 1.0f : 0.0f;
  one_hot(hybridisation(molecule, position), hybridisations);
  features[block++] = atom.in_ring ? 1.0f : 0.0f;
  features[block++] = static_cast<float>(element_mass(atom.element) / 100);
}

void fill_bond_features(const Molecule& molecule, int position,
                        std::span<float, bond_feature_count> features) {
  const Bond& bond = molecule.bond(position);
  std::ranges::fill(features, 0.0f);
  switch (bond.order) {
    case BondOrder::single: features[0] = 1; break;
    case BondOrder::double_: features[1] = 1; break;
    case BondOrder::triple:
    case BondOrder::quadruple: features[2] = 1; break;
    case BondOrder::aromatic: features[3] = 1; break;
  }
  features[4] = bond.conjugated ? 1.0f : 0.0f;
  features[5] = bond.in_ring ? 1.0f : 0.0f;
}

void fill_graph(const Molecule& molecule, const GraphArrays& arrays) {
  refuse_size(molecule.atom_count(), arrays.atom_capacity, "atoms");
  refuse_size(2 * molecule.bond_count(), arrays.edge_capacity, "edges");
  for (int i = 0; i < molecule.atom_count(); ++i)
    fill_atom_features(
        molecule, i,
        std::span<float, atom_feature_count>(
            arrays.x.data() + static_cast<std::ptrdiff_t>(i) * atom_feature_count, atom_feature_count));
  for (int edge = 0; edge < 2 * molecule.bond_count(); ++edge) {
    const Bond& bond = molecule.bond(edge / 2);
    const bool back = edge % 2 == 1;
    arrays.edge_index[static_cast<std::size_t>(edge)] = back ? bond.b : bond.a;
    arrays.edge_index[static_cast<std::size_t>(arrays.edge_capacity + edge)] = back ? bond.a : bond.b;
    fill_bond_features(molecule, edge / 2,
                       std::span<float, bond_feature_count>(
                           arrays.edge_attr.data() + static_cast<std::ptrdiff_t>(edge) * bond_feature_count,
                           bond_feature_count));
  }
}

}  // namespace superstep::data
