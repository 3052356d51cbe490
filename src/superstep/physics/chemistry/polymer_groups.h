// Polymers by their repeat unit, and the additive groups they are made of.
//
// A repeat unit is a molecule with two `*`, the ends that join the next units (`*CC(*)c1ccccc1`). Its main
// chain is cut into groups as D. W. van Krevelen's method asks (Properties of Polymers, chapter 6): a group
// is a main-chain atom with all that hangs on it, a ring system of the main chain, or one of the functional
// groups ester, carbonate, amide, urethane and urea taken as a whole. The chain is read as a circle, so that
// where the unit was cut changes nothing. CH2 inside a side chain is a group of its own.
#pragma once

#include <map>
#include <span>
#include <string>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::data {

// Counts by the group's canonical SMILES, cut bonds of the main chain as `*` ("*C*", "*OC(*)=O",
// "*c1ccc(*)cc1"); CH2 of side chains counts under `side_methylene`. Throws Error (invalid_argument) when
// the molecule is not in one part or has not exactly two `*` of one single bond each.
using GroupCounts = std::map<std::string, int>;
inline const std::string side_methylene = "side CH2";
GroupCounts count_groups(const Molecule& repeat_unit);

// A group's contribution to the molar glass transition function: Tg = sum Yg / M.
struct GroupContribution {
  const char* smiles;  // with `*` at the main chain's ends, in any order of atoms
  const char* name;    // as chemists write it: "CH(C6H5)"
  double yg;           // K kg/mol
  bool published;      // van Krevelen's; else chosen for the generator, after homopolymers that have it
};
std::span<const GroupContribution> group_contributions();
// The contribution of a group of count_groups, or nullptr.
const GroupContribution* find_group_contribution(const std::string& group);

// Tg of the additive method, K. Throws Error (unsupported) naming the group that has no contribution.
double additive_glass_transition(const Molecule& repeat_unit);
double additive_glass_transition(const GroupCounts& groups, double molecular_weight);

}  // namespace superstep::data
