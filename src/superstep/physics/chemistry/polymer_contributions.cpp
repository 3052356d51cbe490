#include <fmt/format.h>

#include <map>

#include "superstep/base/error.h"
#include "superstep/physics/chemistry/polymer_groups.h"
#include "superstep/physics/chemistry/smiles.h"

namespace superstep::data {
namespace {

// Published: as the method is commonly quoted (D. W. van Krevelen, Properties of Polymers, table 6.2). The
// others were chosen to give the homopolymer beside them its measured Tg, or between their neighbours.
constexpr GroupContribution contributions[] = {
    {"*C*", "CH2", 2.7, true},
    {"*C(*)C", "CH(CH3)", 8.0, true},
    {"*C(*)(C)C", "C(CH3)2", 8.5, true},
    {"*C(*)c1ccccc1", "CH(C6H5)", 36.1, true},
    {"*C(*)Cl", "CHCl", 20.1, true},
    {"*C(*)C#N", "CH(CN)", 17.3, true},
    {"*C(*)O", "CH(OH)", 13.0, true},
    {"*C(*)OC(C)=O", "CH(OCOCH3)", 23.3, true},
    {"*C(*)C(=O)OC", "CH(COOCH3)", 21.3, true},
    {"*C(*)(C)C(=O)OC", "C(CH3)(COOCH3)", 35.1, true},
    {"*O*", "O", 4.0, true},
    {"*[Si](*)(C)C", "Si(CH3)2", 7.0, true},
    {"*C(*)F", "CHF", 12.4, false},
    {"*C(*)OC", "CH(OCH3)", 11.9, false},
    {"*C(*)C1CCCCC1", "CH(C6H11)", 41.3, false},                  // poly(vinyl cyclohexane), 400 K
    {"*C(*)(C)c1ccccc1", "C(CH3)(C6H5)", 50.0, false},            // poly(alpha-methylstyrene), 446 K
    {"*C(*)C(=O)Oc1ccccc1", "CH(COOC6H5)", 46.0, false},          // poly(phenyl acrylate), 330 K
    {"*C(*)(C)C(=O)Oc1ccccc1", "C(CH3)(COOC6H5)", 59.0, false},   // poly(phenyl methacrylate), 383 K
    {"*C(*)C(=O)OC1CCCCC1", "CH(COOC6H11)", 42.0, false},         // poly(cyclohexyl acrylate), 292 K
    {"*C(*)(C)C(=O)OC1CCCCC1", "C(CH3)(COOC6H11)", 58.0, false},  // poly(cyclohexyl methacrylate), 361 K
    {"*OC(*)=O", "COO", 12.5, false},
    {"*OC(=O)O*", "OCOO", 20.0, false},
    {"*NC(*)=O", "CONH", 21.0, false},
    {"*c1ccc(*)cc1", "p-C6H4", 35.0, false},  // poly(ethylene terephthalate), 340 K
    {"*c1cccc(*)c1", "m-C6H4", 35.0, false},
    {"*c1ccc(*)cc1C", "C6H3(CH3)", 36.0, false},
    {"*c1cc(*)cc(OC)c1", "m-C6H3(OCH3)", 39.0, false},
    {"*C1CCC(*)CC1", "C6H10", 27.0, false},
    {"*c1ccc2cc(*)ccc2c1", "C10H6", 65.0, false},             // poly(ethylene naphthalate), 395 K
    {"*S(*)(=O)=O", "SO2", 41.0, false},                      // poly(ether sulfone), 495 K
    {"*C(*)=O", "CO", 15.0, false},                           // BTDA-ODA polyimide, 553 K
    {"*C(*)(C(F)(F)F)C(F)(F)F", "C(CF3)2", 47.0, false},      // 6FDA-ODA polyimide, 572 K
    {"*N1C(=O)c2ccc(*)cc2C1=O", "phthalimide", 90.0, false},  // ODPA-ODA polyimide, 543 K
    {"*N1C(=O)c2cc3c(cc2C1=O)C(=O)N(*)C3=O", "pyromellitimide", 174.0, false},  // PMDA-ODA, 649 K
    {"*[Si](*)(C)c1ccccc1", "Si(CH3)(C6H5)", 29.6, false},  // poly(methyl phenyl siloxane), 247 K
    {"*[Si](*)(c1ccccc1)c1ccccc1", "Si(C6H5)2", 58.0, false},
    {"side CH2", "side CH2", 2.7, true},
};

using Lookup = std::map<std::string, const GroupContribution*>;

const Lookup& by_canonical_smiles() {
  static const Lookup lookup = [] {
    Lookup made;
    for (const GroupContribution& each : contributions)
      made[each.smiles == side_methylene ? side_methylene : canonical_smiles(parse_smiles(each.smiles))] =
          &each;
    return made;
  }();
  return lookup;
}

}  // namespace

std::span<const GroupContribution> group_contributions() { return contributions; }

const GroupContribution* find_group_contribution(const std::string& group) {
  const auto found = by_canonical_smiles().find(group);
  return found == by_canonical_smiles().end() ? nullptr : found->second;
}

double additive_glass_transition(const GroupCounts& groups, double molecular_weight) {
  constexpr double grams_per_kilogram = 1000;
  double sum = 0;
  for (const auto& [group, count] : groups) {
    const GroupContribution* contribution = find_group_contribution(group);
    if (contribution == nullptr)
      throw Error(ErrorCode::unsupported, "no contribution to Tg is known for this group", group);
    sum += count * contribution->yg;
  }
  return sum * grams_per_kilogram / molecular_weight;
}

double additive_glass_transition(const Molecule& repeat_unit) {
  return additive_glass_transition(count_groups(repeat_unit), molecular_weight(repeat_unit));
}

}  // namespace superstep::data
