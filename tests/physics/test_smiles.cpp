#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/physics/chemistry/smiles.h"

namespace superstep::data {
namespace {

std::string refusal(std::string_view smiles) {
  try {
    parse_smiles(smiles);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::vector<int> shuffled_ranks(int count, std::uint64_t seed) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  RandomStream random(seed);
  for (std::size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[random.below(i)]);
  return ranks;
}

// Drugs, monomers, ligands and oddities; formulas as RDKit 2026.09 gives them.
struct Known {
  const char* smiles;
  const char* formula;
};
constexpr Known known[] = {
    {"CC(=O)Oc1ccccc1C(=O)O", "C9H8O4"},
    {"CN1C=NC2=C1C(=O)N(C)C(=O)N2C", "C8H10N4O2"},
    {"Cn1cnc2c1c(=O)n(C)c(=O)n2C", "C8H10N4O2"},
    {"c1ccc2[nH]ccc2c1", "C8H7N"},
    {"c1ccsc1", "C4H4S"},
    {"c1cc[o+]cc1", "C5H5O"},
    {"O=S(=O)(O)c1ccc(cc1)N", "C6H7NO3S"},
    {"FC(F)(F)S(=O)(=O)Oc1cccc2ncccc12", "C10H6F3NO3S"},
    {"[13CH4]", "CH4"},
    {"[NH4+].[Cl-]", "ClH4N"},
    {"CP(c1ccccc1)(c1ccccc1)=O", "C13H13OP"},
    {"C1CC1.C%10CC%10", "C6H12"},
    {"C%(123)CC%(123)", "C3H6"},
    {"C/C=C\\C", "C4H8"},
    {"N[C@@H](C)C(=O)O", "C3H7NO2"},
    {"c1ccccc1-c1ccccc1", "C12H10"},
    {"c1ccccc1c1ccccc1", "C12H10"},
    {"C=1CCCCC=1", "C6H10"},
    {"[Fe+2].[O-]S(=O)(=O)[O-]", "FeO4S"},
    {"O=C1c2ccccc2C(=O)c2ccccc12", "C14H8O2"},
    {"Br[Pd]Br", "Br2Pd"},
    {"[se]1cccc1", "C4H4Se"},
};

TEST(Smiles, GivesKnownFormulas) {
  for (const Known& each : known)
    EXPECT_EQ(molecular_formula(parse_smiles(each.smiles)), each.formula) << each.smiles;
}

TEST(Smiles, StyreneRepeatUnit) {
  const Molecule unit = parse_smiles("*CC(*)c1ccccc1");
  EXPECT_EQ(unit.atom_count(), 10);
  EXPECT_EQ(unit.bond_count(), 10);
  EXPECT_NEAR(molecular_weight(unit), 104.152, 5e-4);
}

TEST(Smiles, SeesRingsAromaticityAndConjugation) {
  const Molecule biphenyl = parse_smiles("c1ccccc1c1ccccc1");
  const auto count = [](const Molecule& molecule, auto property) {
    return std::ranges::count_if(molecule.bonds(), property);
  };
  EXPECT_EQ(count(biphenyl, [](const Bond& b) { return b.order == BondOrder::aromatic; }), 12);
  EXPECT_EQ(count(biphenyl, [](const Bond& b) { return b.in_ring; }), 12);
  EXPECT_EQ(count(biphenyl, [](const Bond& b) { return b.conjugated; }), 13);
  // Fluorene: the bond between the two benzene rings lies on a ring, yet not on an aromatic one.
  const Molecule fluorene = parse_smiles("c1ccc2c(c1)Cc1ccccc12");
  EXPECT_EQ(count(fluorene, [](const Bond& b) { return b.order == BondOrder::aromatic; }), 12);
  EXPECT_EQ(molecular_formula(fluorene), "C13H10");
  // An atom where two rings meet is in a ring, the bond to a substituent is not.
  const Molecule spiro = parse_smiles("C1CCC12CC2C");
  EXPECT_EQ(count(spiro, [](const Bond& b) { return b.in_ring; }), 7);
}

TEST(Smiles, RefusesWithThePosition) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the SMILES is empty"},
      {"CC(C", "character 3: this branch is never closed"},
      {"CC)C", "character 3: ')' closes no branch"},
      {"C1CC", "character 2: ring 1 is never closed"},
      {"CX", "character 2: 'X' has no meaning here"},
      {"C[Xx]", "character 3: no element of this symbol"},
      {"C[NH4+", "character 7: ']' is missing"},
      {"C=", "character 2: this bond leads to no atom"},
      {"=C", "character 1: a bond needs an atom before it"},
      {"C==C", "character 3: two bond symbols in a row"},
      {"C()C", "character 3: the branch is empty"},
      {"(C)C", "character 1: a branch needs an atom before it"},
      {"C.", "character 2: '.' needs an atom after it"},
      {"C11", "character 3: ring 1 joins an atom to itself"},
      {"C1C1", "character 4: ring 1 joins two atoms that have a bond already"},
      {"C=1CCC#1", "character 8: ring 1 has another bond symbol at character 3"},
      {"C%1C", "character 4: a ring number of two digits is missing"},
      {"CC(C)(C)(C)C", "character 2: C has too many bonds"},
      {"FCl(C)", "character 2: Cl has too many bonds"},
      {"Cc", "character 2: an aromatic atom outside a ring of aromatic atoms"},
      {"c1ccccc1:c1ccccc1", "character 10: an aromatic bond outside a ring of aromatic atoms"},
      {"C:C", "character 3: an aromatic bond outside"},
      {"C\x01", "character 2: byte 0x01 has no meaning here"},
      {"[C+99]", "a charge over 15"},
  };
  for (const auto& [smiles, message] : cases)
    EXPECT_NE(refusal(smiles).find(message), std::string::npos) << smiles << " gave " << refusal(smiles);
  EXPECT_NE(refusal("CC(C").find("SMILES 'CC(C'"), std::string::npos);
}

TEST(Smiles, CanonicalTextDoesNotDependOnTheNumbering) {
  for (const Known& each : known) {
    const Molecule molecule = parse_smiles(each.smiles);
    const std::string canonical = canonical_smiles(molecule);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const std::string other = write_smiles(molecule, shuffled_ranks(molecule.atom_count(), seed));
      EXPECT_EQ(canonical_smiles(parse_smiles(other)), canonical) << other;
      EXPECT_EQ(molecular_formula(parse_smiles(other)), each.formula) << other;
    }
  }
  EXPECT_NE(canonical_smiles(parse_smiles("CCO")), canonical_smiles(parse_smiles("COC")));
  EXPECT_NE(canonical_smiles(parse_smiles("c1ccccc1")), canonical_smiles(parse_smiles("C1CCCCC1")));
}

TEST(Smiles, LongChainsAndDeepBranchesAreTakenInLinearTime) {
  const std::string chain(1'000'000, 'C');
  EXPECT_EQ(parse_smiles(chain).bond_count(), 999'999);
  EXPECT_EQ(write_smiles(parse_smiles(chain)), chain);
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "C(";
  EXPECT_NE(refusal(deep + "C").find("never closed"), std::string::npos);
  EXPECT_EQ(parse_smiles(deep + "C" + std::string(200'000, ')')).atom_count(), 200'001);
}

// Every single-byte change of real texts gives a molecule or an Error, and what is accepted can be written
// and read again.
TEST(Smiles, WhatIsShownOfTheTextSteersNoTerminal) {
  const std::string refused = refusal("\x1b[31mC\x07");
  EXPECT_NE(refused.find("SMILES '?[31mC?'"), std::string::npos) << refused;
}

TEST(Smiles, EveryByteFlipIsReadOrRefused) {
  int accepted = 0, refused = 0;
  for (const Known& each : known) {
    for (std::size_t i = 0; i < std::string_view(each.smiles).size(); ++i)
      for (int bit = 0; bit < 8; ++bit) {
        std::string text = each.smiles;
        text[i] = static_cast<char>(text[i] ^ (1 << bit));
        try {
          const Molecule molecule = parse_smiles(text);
          EXPECT_EQ(molecular_formula(parse_smiles(write_smiles(molecule))), molecular_formula(molecule))
              << text;
          ++accepted;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << text << ": " << error.what();
          ++refused;
        }
      }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace superstep::data
