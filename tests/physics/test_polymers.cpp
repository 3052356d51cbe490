#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/physics/chemistry/polymer_generator.h"
#include "superstep/physics/chemistry/polymer_grammar.h"
#include "superstep/physics/chemistry/polymer_groups.h"
#include "superstep/physics/chemistry/smiles.h"

namespace superstep::data {
namespace {

TEST(PolymerGroups, AdditiveMethodGivesTheHomopolymers) {
  const std::pair<const char*, double> homopolymers[] = {
      {"*CC(*)C", 254},    {"*CC(*)c1ccccc1", 373}, {"*CC(*)Cl", 365},      {"*CC(*)C#N", 377},
      {"*CC(*)O", 356},    {"*CC(*)OC(C)=O", 302},  {"*CC(*)C(=O)OC", 279}, {"*CC(*)(C)C(=O)OC", 378},
      {"*CC(*)(C)C", 200}, {"*CO*", 223},           {"*O[Si](*)(C)C", 148},
  };
  for (const auto& [smiles, kelvin] : homopolymers)
    EXPECT_NEAR(additive_glass_transition(parse_smiles(smiles)), kelvin, 0.5) << smiles;
}

TEST(PolymerGroups, WhereTheUnitIsCutChangesNothing) {
  const std::pair<const char*, const char*> same[] = {
      {"*OCCOC(=O)c1ccc(cc1)C(=O)*", "*C(=O)OCCOC(=O)c1ccc(*)cc1"},
      {"*OCCOC(=O)c1ccc(cc1)C(=O)*", "*COC(=O)c1ccc(cc1)C(=O)OC*"},
      {"*NCCCCCC(*)=O", "*CCCNC(=O)CC*"},
      {"*OC(=O)Oc1ccc(cc1)C(C)(C)c1ccc(*)cc1", "*c1ccc(cc1)OC(=O)Oc1ccc(cc1)C(*)(C)C"},
  };
  for (const auto& [one, other] : same)
    EXPECT_EQ(count_groups(parse_smiles(one)), count_groups(parse_smiles(other))) << one << " " << other;
}

TEST(PolymerGroups, RenumberingChangesNothing) {
  RandomStream random(1);
  for (std::uint64_t place = 0; place < repeat_unit_count(); place += 251) {
    const Molecule unit = parse_smiles(repeat_unit(place).smiles);
    std::vector<int> ranks(unit.atoms().size());
    std::iota(ranks.begin(), ranks.end(), 0);
    for (std::size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[random.below(i)]);
    const Molecule renumbered = parse_smiles(write_smiles(unit, ranks));
    EXPECT_EQ(count_groups(renumbered), count_groups(unit)) << write_smiles(unit, ranks);
    EXPECT_NEAR(infinite_glass_transition(renumbered), infinite_glass_transition(unit), 1e-6);
  }
}

TEST(PolymerGroups, CountsFunctionalGroupsWhole) {
  const GroupCounts pet = count_groups(parse_smiles("*OCCOC(=O)c1ccc(cc1)C(=O)*"));
  const auto key = [](const char* smiles) { return canonical_smiles(parse_smiles(smiles)); };
  EXPECT_EQ(pet, (GroupCounts{{key("*C*"), 2}, {key("*OC(*)=O"), 2}, {key("*c1ccc(*)cc1"), 1}}));
  EXPECT_NEAR(additive_glass_transition(parse_smiles("*OCCOC(=O)c1ccc(cc1)C(=O)*")), 340, 1);
  const GroupCounts butyl_acrylate = count_groups(parse_smiles("*CC(*)C(=O)OCCCC"));
  EXPECT_EQ(butyl_acrylate, (GroupCounts{{key("*C*"), 1}, {key("*C(*)C(=O)OC"), 1}, {side_methylene, 3}}));
}

TEST(PolymerGroups, RefusesWhatIsNoRepeatUnit) {
  const auto message = [](const char* smiles) -> std::string {
    try {
      count_groups(parse_smiles(smiles));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(message("CCC").find("0 '*' where two are needed"), std::string::npos);
  EXPECT_NE(message("*CC(*)C*").find("3 '*'"), std::string::npos);
  EXPECT_NE(message("**").find("nothing stands between"), std::string::npos);
  EXPECT_NE(message("*C=*").find("one single bond"), std::string::npos);
  EXPECT_NE(message("*C*.C").find("not in one part"), std::string::npos);
  EXPECT_NE(message("CCC").find("repeat unit 'CCC'"), std::string::npos);
  try {
    additive_glass_transition(parse_smiles("*CC(*)I"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(error.where(), canonical_smiles(parse_smiles("*C(*)I")));
  }
}

TEST(PolymerGrammar, UnitsAreDistinctAndEveryGroupIsKnown) {
  std::set<std::string> seen;
  int largest = 0;
  for (std::uint64_t place = 0; place < repeat_unit_count(); ++place) {
    const RepeatUnit unit = repeat_unit(place);
    const Molecule molecule = parse_smiles(unit.smiles);
    ASSERT_TRUE(seen.insert(canonical_smiles(molecule)).second) << unit.smiles;
    const double kelvin = additive_glass_transition(molecule);
    ASSERT_GT(kelvin, 100) << unit.smiles;
    ASSERT_LT(kelvin, 800) << unit.smiles;
    largest = std::max(largest, molecule.atom_count());
  }
  EXPECT_GE(seen.size(), 5000u);
  EXPECT_LE(largest, 64);
  RecordProperty("repeat_units", static_cast<int>(seen.size()));
  std::printf("%zu units, at most %d atoms\n", seen.size(), largest);
}

}  // namespace
}  // namespace superstep::data
