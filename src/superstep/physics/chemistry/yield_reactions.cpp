#include "superstep/physics/chemistry/yield_reactions.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace superstep::data {
namespace {

constexpr Ligand ligands[] = {
    {"P(tBu)3", "CC(C)(C)P(C(C)(C)C)C(C)(C)C", 1.0, 182, 0.6},
    {"PPh3", "c1ccc(cc1)P(c1ccccc1)c1ccccc1", 0.2, 145, 0.5},
    {"AmPhos", "CC(C)(C)P(C(C)(C)C)c1ccc(cc1)N(C)C", 0.8, 170, 0.3},
    {"PCy3", "C1CCC(CC1)P(C1CCCCC1)C1CCCCC1", 0.85, 170, 0.6},
    {"P(o-Tol)3", "Cc1ccccc1P(c1ccccc1C)c1ccccc1C", 0.35, 194, 0.9},
    {"CataCXium A", "CCCCP(C12CC3CC(CC(C3)C1)C2)C12CC3CC(CC(C3)C1)C2", 0.95, 180, 0.3},
    {"SPhos", "COc1cccc(OC)c1-c1ccccc1P(C1CCCCC1)C1CCCCC1", 0.75, 195, 0.15},
    {"dtbpf", "CC(C)(C)P([c-]1cccc1)C(C)(C)C.CC(C)(C)P([c-]1cccc1)C(C)(C)C.[Fe+2]", 0.8, 175, 0.25},
    {"XPhos", "CC(C)c1cc(C(C)C)c(c(c1)C(C)C)-c1ccccc1P(C1CCCCC1)C1CCCCC1", 0.8, 205, 0.12},
    {"dppf", "c1ccc(cc1)P([c-]1cccc1)c1ccccc1.c1ccc(cc1)P([c-]1cccc1)c1ccccc1.[Fe+2]", 0.3, 160, 0.25},
    {"Xantphos", "CC1(C)c2cccc(P(c3ccccc3)c3ccccc3)c2Oc2c1cccc2P(c1ccccc1)c1ccccc1", 0.3, 165, 0.2},
    {"none", "", -0.6, 120, 4.0},
};

constexpr Base bases[] = {
    {"NaOH", "[OH-].[Na+]", 1.5, 2.0}, {"NaHCO3", "OC(=O)[O-].[Na+]", 0.35, 0.4},
    {"CsF", "[F-].[Cs+]", 0.6, 0.7},   {"K3PO4", "[O-]P([O-])([O-])=O.[K+].[K+].[K+]", 1.0, 1.0},
    {"KOH", "[OH-].[K+]", 1.6, 2.2},   {"LiOtBu", "CC(C)(C)[O-].[Li+]", 1.2, 1.6},
    {"Et3N", "CCN(CC)CC", 0.12, 0.4},  {"none", "", 0.015, 0.15},
};

constexpr Solvent solvents[] = {
    {"MeCN", "CC#N", 0.6, 0.8, 1.0},
    {"THF", "C1CCOC1", 0.45, 0.6, 0.8},
    {"DMF", "CN(C)C=O", 0.7, 1.0, 1.2},
    {"MeOH", "CO", 1.2, 2.0, 1.5},
};

struct Electrophile {
  const char* name;
  const char* smiles;
  double rate;
};
struct Boron {
  const char* name;
  const char* smiles;
  double transmetalation, side_reaction;
  bool trifluoroborate;
};

constexpr Electrophile quinolines[] = {
    {"6-chloroquinoline", "Clc1ccc2ncccc2c1", 0.002},
    {"6-bromoquinoline", "Brc1ccc2ncccc2c1", 0.04},
    {"6-quinolyl triflate", "O=S(=O)(Oc1ccc2ncccc2c1)C(F)(F)F", 0.05},
    {"6-iodoquinoline", "Ic1ccc2ncccc2c1", 0.2},
};
constexpr Boron indazoles[] = {
    {"indazole boronic acid", "Cc1ccc2n(ncc2c1B(O)O)C1CCCCO1", 1.0, 1.8, false},
    {"indazole pinacol ester", "Cc1ccc2n(ncc2c1B1OC(C)(C)C(C)(C)O1)C1CCCCO1", 0.45, 0.7, false},
    {"indazole trifluoroborate", "Cc1ccc2n(ncc2c1[B-](F)(F)F)C1CCCCO1.[K+]", 0.25, 0.5, true},
};
// The same with the roles exchanged.
constexpr Electrophile bromoindazole = {"bromoindazole", "Cc1ccc2n(ncc2c1Br)C1CCCCO1", 0.02};
constexpr Boron quinoline_borons[] = {
    {"quinoline boronic acid", "OB(O)c1ccc2ncccc2c1", 1.2, 1.2, false},
    {"quinoline pinacol ester", "CC1(C)OB(OC1(C)C)c1ccc2ncccc2c1", 0.55, 0.5, false},
    {"quinoline trifluoroborate", "F[B-](F)(F)c1ccc2ncccc2c1.[K+]", 0.3, 0.35, true},
};

ReactantPair pair_of(const Electrophile& electrophile, const Boron& boron) {
  return {electrophile.name, electrophile.smiles,   electrophile.rate,   boron.name,
          boron.smiles,      boron.transmetalation, boron.side_reaction, boron.trifluoroborate};
}

// Rates at 100 C of factors 1, 1/s.
constexpr double transmetalation_rate = 0.08, elimination_rate = 0.03, side_rate = 0.003,
                 deactivation_rate = 0.02;

}  // namespace

std::span<const Ligand> coupling_ligands() { return ligands; }
std::span<const Base> coupling_bases() { return bases; }
std::span<const Solvent> coupling_solvents() { return solvents; }

std::span<const ReactantPair> coupling_pairs() {
  static const std::vector<ReactantPair> pairs = [] {
    std::vector<ReactantPair> made;
    for (const Electrophile& electrophile : quinolines)
      for (const Boron& boron : indazoles) made.push_back(pair_of(electrophile, boron));
    for (const Boron& boron : quinoline_borons) made.push_back(pair_of(bromoindazole, boron));
    return made;
  }();
  return pairs;
}

const char* coupling_product_smiles() { return "Cc1ccc2n(ncc2c1-c1ccc2ncccc2c1)C1CCCCO1"; }

std::uint64_t reaction_count() {
  return std::size(ligands) * std::size(bases) * std::size(solvents) * coupling_pairs().size();
}

Conditions conditions_of(std::uint64_t number) {
  const auto take = [&](std::size_t choices) {
    const auto value = static_cast<int>(number % choices);
    number /= choices;
    return value;
  };
  Conditions conditions;
  conditions.ligand = take(std::size(ligands));
  conditions.base = take(std::size(bases));
  conditions.solvent = take(std::size(solvents));
  conditions.pair = take(coupling_pairs().size());
  return conditions;
}

// Donating ligands speed up oxidative addition, bulky ones reductive elimination; hydroxide speeds up both
// transmetalation and the loss of boron; trifluoroborates need a protic solvent.
CouplingRates coupling_rates(const Conditions& conditions) {
  const Ligand& ligand = ligands[conditions.ligand];
  const Base& base = bases[conditions.base];
  const Solvent& solvent = solvents[conditions.solvent];
  const ReactantPair& pair = coupling_pairs()[static_cast<std::size_t>(conditions.pair)];
  const double hydrolysis = !pair.trifluoroborate ? 1 : solvent.transmetalation > 1 ? 2.5 : 0.6;
  CouplingRates rates;
  rates.oxidative_addition = pair.oxidative_addition * std::exp(2.5 * ligand.donor);
  rates.transmetalation = transmetalation_rate * pair.transmetalation * base.transmetalation *
                          solvent.transmetalation * hydrolysis;
  rates.reductive_elimination = elimination_rate * std::exp(0.04 * (ligand.cone_angle - 150));
  rates.side_reaction = side_rate * pair.side_reaction * base.side_reaction * solvent.side_reaction;
  rates.deactivation = deactivation_rate * ligand.lability * solvent.deactivation;
  return rates;
}

std::string role_smiles(const Conditions& conditions, Role role) {
  const ReactantPair& pair = coupling_pairs()[static_cast<std::size_t>(conditions.pair)];
  switch (role) {
    case Role::electrophile: return pair.electrophile_smiles;
    case Role::nucleophile: return pair.nucleophile_smiles;
    case Role::ligand: return ligands[conditions.ligand].smiles;
    case Role::base: return bases[conditions.base].smiles;
    case Role::solvent: return solvents[conditions.solvent].smiles;
  }
  return {};
}

const char* role_name(Role role) {
  constexpr const char* names[role_count] = {"electrophile", "nucleophile", "ligand", "base", "solvent"};
  return names[static_cast<int>(role)];
}

std::string joined_smiles(const Conditions& conditions) {
  std::string joined;
  for (int role = 0; role < role_count; ++role) {
    const std::string smiles = role_smiles(conditions, static_cast<Role>(role));
    if (!smiles.empty()) joined += (joined.empty() ? "" : ".") + smiles;
  }
  return joined;
}

}  // namespace superstep::data
