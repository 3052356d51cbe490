#include "superstep/physics/chemistry/molecule_descriptors.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "superstep/file/atoms/element.h"

namespace superstep::data {
namespace {

// Pauling electronegativity and van der Waals radius (A) of the elements that occur in couplings; others are
// taken as carbon.
struct AtomNumbers {
  int element;
  double electronegativity, radius;
};
constexpr AtomNumbers known_atoms[] = {
    {1, 2.20, 1.10},  {3, 0.98, 1.82},  {5, 2.04, 1.92},  {6, 2.55, 1.70},  {7, 3.04, 1.55},
    {8, 3.44, 1.52},  {9, 3.98, 1.47},  {11, 0.93, 2.27}, {14, 1.90, 2.10}, {15, 2.19, 1.80},
    {16, 2.58, 1.80}, {17, 3.16, 1.75}, {19, 0.82, 2.75}, {26, 1.83, 2.04}, {35, 2.96, 1.85},
    {46, 2.20, 2.02}, {53, 2.66, 1.98}, {55, 0.79, 3.43},
};

const AtomNumbers& numbers_of(int element) {
  const auto found = std::ranges::find(known_atoms, element, &AtomNumbers::element);
  return found != std::end(known_atoms) ? *found : known_atoms[3];
}

double electronegativity(int element) { return numbers_of(element).electronegativity; }

double atom_volume(int element) {
  const double r = numbers_of(element).radius;
  return 4.18879 * r * r * r;
}

double mean_electronegativity(const Molecule& molecule) {
  double sum = 0, atoms = 0;
  for (const Atom& atom : molecule.atoms()) {
    sum += electronegativity(atom.element) + atom.hydrogens * electronegativity(1);
    atoms += 1 + atom.hydrogens;
  }
  return sum / atoms;
}

bool is_polar(const Atom& atom) { return atom.element == 7 || atom.element == 8 || atom.charge != 0; }

}  // namespace

std::vector<double> partial_charges(const Molecule& molecule) {
  constexpr int rounds = 6;
  constexpr double first_transfer = 0.16, stiffness = 1.6;  // e per unit of electronegativity; its rise per e
  const auto count = molecule.atoms().size();
  std::vector<double> charges;
  for (const Atom& atom : molecule.atoms()) charges.push_back(atom.charge);
  double transfer = first_transfer;
  for (int round = 0; round < rounds; ++round, transfer /= 2) {
    std::vector<double> pull(count);
    for (std::size_t i = 0; i < count; ++i)
      pull[i] = electronegativity(molecule.atoms()[i].element) + stiffness * charges[i];
    for (const Bond& bond : molecule.bonds()) {
      const auto a = static_cast<std::size_t>(bond.a), b = static_cast<std::size_t>(bond.b);
      const double moved = transfer * (pull[b] - pull[a]);  // electrons towards the stronger
      charges[a] += moved;
      charges[b] -= moved;
    }
  }
  return charges;
}

std::vector<double> surrogate_shifts(const Molecule& molecule) {
  const std::vector<double> charges = partial_charges(molecule);
  std::vector<double> shifts;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const bool unsaturated =
        std::ranges::any_of(molecule.neighbors(static_cast<int>(i)), [&](const Molecule::Neighbor& neighbor) {
          return molecule.bond(neighbor.bond).order != BondOrder::single;
        });
    shifts.push_back((unsaturated ? 125 : 25) + 160 * charges[i]);
  }
  return shifts;
}

std::array<double, global_descriptor_count> global_descriptors(const Molecule& molecule) {
  if (molecule.atom_count() == 0) return {};
  const double chi = mean_electronegativity(molecule);
  const std::vector<double> charges = partial_charges(molecule);
  double conjugated = 0, polar = 0, volume = 0, spread = 0;
  for (const Bond& bond : molecule.bonds()) conjugated += bond.conjugated;
  for (const Atom& atom : molecule.atoms()) {
    polar += is_polar(atom);
    volume += atom_volume(atom.element) + atom.hydrogens * atom_volume(1) / 2;
  }
  for (const double charge : charges) spread += charge * charge;
  // A longer conjugated path brings the frontier orbitals together.
  const double hardness = 5.5 / (1 + 0.08 * conjugated);
  const double middle = -1.6 * chi;
  return {middle - hardness / 2,
          middle + hardness / 2,
          4.8 * std::sqrt(spread),
          1.6 * chi,
          hardness,
          volume,
          molecular_weight(molecule),
          polar / molecule.atom_count()};
}

std::vector<float> role_descriptors(const std::array<double, global_descriptor_count>& globals,
                                    std::vector<AtomDescriptors> atoms) {
  std::vector<float> all;
  for (const double value : globals) all.push_back(static_cast<float>(value));
  std::ranges::sort(atoms, std::greater<>());
  atoms.resize(described_atoms);
  for (const AtomDescriptors& atom : atoms) {
    all.push_back(static_cast<float>(atom.charge));
    all.push_back(static_cast<float>(atom.shift));
  }
  return all;
}

std::vector<float> role_descriptors(const Molecule& molecule) {
  const std::vector<double> charges = partial_charges(molecule), shifts = surrogate_shifts(molecule);
  std::vector<AtomDescriptors> atoms;
  for (std::size_t i = 0; i < charges.size(); ++i) atoms.push_back({charges[i], shifts[i]});
  return role_descriptors(global_descriptors(molecule), std::move(atoms));
}

}  // namespace superstep::data
