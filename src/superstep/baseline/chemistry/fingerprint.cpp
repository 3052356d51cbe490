#include "superstep/baseline/chemistry/fingerprint.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace superstep::baseline {
namespace {

// Mixes a value into a hash (the finaliser of splitmix64, S. Vigna).
std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash += 0x9e3779b97f4a7c15 + value;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

std::uint64_t environment_of(const data::Molecule& molecule, int atom) {
  const data::Atom& own = molecule.atom(atom);
  std::uint64_t hash = 0;
  for (const int value : {own.element, own.hydrogens, own.charge + 16, molecule.degree(atom),
                          int{own.aromatic}, int{own.in_ring}})
    hash = mixed(hash, static_cast<std::uint64_t>(value));
  return hash;
}

std::vector<std::uint64_t> grown(const data::Molecule& molecule, const std::vector<std::uint64_t>& before) {
  std::vector<std::uint64_t> after;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> around;
  for (int atom = 0; atom < molecule.atom_count(); ++atom) {
    around.clear();
    for (const auto& [neighbor, bond] : molecule.neighbors(atom))
      around.emplace_back(static_cast<std::uint64_t>(molecule.bond(bond).order),
                          before[static_cast<std::size_t>(neighbor)]);
    std::sort(around.begin(), around.end());
    std::uint64_t hash = mixed(1, before[static_cast<std::size_t>(atom)]);
    for (const auto& [order, environment] : around) hash = mixed(mixed(hash, order), environment);
    after.push_back(hash);
  }
  return after;
}

}  // namespace

std::vector<float> morgan_fingerprint(const data::Molecule& molecule, int radius, int bins) {
  std::vector<float> counts(static_cast<std::size_t>(bins), 0.0f);
  std::vector<std::uint64_t> environments;
  for (int atom = 0; atom < molecule.atom_count(); ++atom)
    environments.push_back(environment_of(molecule, atom));
  for (int reach = 0; reach <= radius; ++reach) {
    if (reach > 0) environments = grown(molecule, environments);
    for (const std::uint64_t hash : environments) counts[hash % static_cast<std::uint64_t>(bins)] += 1;
  }
  return counts;
}

}  // namespace superstep::baseline
