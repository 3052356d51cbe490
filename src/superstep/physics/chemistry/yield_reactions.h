// A full factorial of Suzuki-Miyaura couplings: 12 ligands x 8 bases x 4 solvents x 15 pairs of reactants,
// laid out as in D. Perera et al., Science 359, 429 (2018), with rates of a made-up but chemically ordered
// model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "superstep/physics/chemistry/kinetics.h"

namespace superstep::data {

struct Ligand {
  const char* name;
  const char* smiles;  // empty for none
  double donor;        // how much electron density it gives, 0 to 1
  double cone_angle;   // degrees
  double lability;     // how easily the catalyst dies
};
struct Base {
  const char* name;
  const char* smiles;
  double transmetalation, side_reaction;  // factors of the rates
};
struct Solvent {
  const char* name;
  const char* smiles;
  double transmetalation, side_reaction, deactivation;
};
// One reactant carries the leaving group, the other boron.
struct ReactantPair {
  const char* electrophile_name;
  const char* electrophile_smiles;
  double oxidative_addition;  // 1/s
  const char* nucleophile_name;
  const char* nucleophile_smiles;
  double transmetalation, side_reaction;
  bool trifluoroborate;  // must be hydrolysed before it reacts
};

std::span<const Ligand> coupling_ligands();
std::span<const Base> coupling_bases();
std::span<const Solvent> coupling_solvents();
std::span<const ReactantPair> coupling_pairs();
const char* coupling_product_smiles();

struct Conditions {
  int ligand = 0, base = 0, solvent = 0, pair = 0;
};
std::uint64_t reaction_count();                  // 5760
Conditions conditions_of(std::uint64_t number);  // number < reaction_count()
CouplingRates coupling_rates(const Conditions& conditions);

// SMILES of what stands in a role; empty for no ligand or base.
enum class Role { electrophile, nucleophile, ligand, base, solvent };
inline constexpr int role_count = 5;
std::string role_smiles(const Conditions& conditions, Role role);
const char* role_name(Role role);  // "electrophile", ...
// All of them joined by '.', without the absent ones.
std::string joined_smiles(const Conditions& conditions);

}  // namespace superstep::data
