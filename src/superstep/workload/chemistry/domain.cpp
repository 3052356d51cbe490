#include "superstep/workload/chemistry/domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "superstep/file/atoms/element.h"

namespace superstep::workload {
namespace {

std::string words_for(const data::Atom& atom) {
  return fmt::format("{}{}H{}{:+}", data::element_symbol(atom.element), atom.aromatic ? "~" : "",
                     atom.hydrogens, atom.charge);
}

// An atom with its neighbours and the bonds to them, the same whatever their order.
std::string surroundings(const data::Molecule& molecule, int atom) {
  std::vector<std::string> around;
  for (const data::Molecule::Neighbor& next : molecule.neighbors(atom))
    around.push_back(fmt::format("{}{}", static_cast<int>(molecule.bond(next.bond).order),
                                 data::element_symbol(molecule.atom(next.atom).element)));
  std::ranges::sort(around);
  return fmt::format("{}: {}", words_for(molecule.atom(atom)), fmt::join(around, " "));
}

}  // namespace

void Domain::learn(const data::Molecule& molecule) {
  most_atoms_ = std::max(most_atoms_, molecule.atom_count());
  for (int atom = 0; atom < molecule.atom_count(); ++atom) surroundings_.insert(surroundings(molecule, atom));
}

std::string Domain::outside(const data::Molecule& molecule) const {
  std::vector<std::string> strange;
  for (int atom = 0; atom < molecule.atom_count(); ++atom)
    if (!surroundings_.contains(surroundings(molecule, atom)))
      strange.push_back(fmt::format("{} ({})", atom + 1, data::element_symbol(molecule.atom(atom).element)));
  std::string words;
  if (strange.size() == 1)
    words = fmt::format("atom {}, with its neighbors, is of a kind that training did not see", strange[0]);
  else if (!strange.empty())
    words = fmt::format("atoms {}, with their neighbors, are of kinds that training did not see",
                        fmt::join(strange, ", "));
  if (molecule.atom_count() > most_atoms_)
    words += fmt::format("{}{} atoms, in training {} at most", words.empty() ? "" : "; ",
                         molecule.atom_count(), most_atoms_);
  return words;
}

}  // namespace superstep::workload
