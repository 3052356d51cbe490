// Rings, and molecules in the plane.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "superstep/physics/chemistry/depiction.h"
#include "superstep/physics/chemistry/polymer_grammar.h"
#include "superstep/physics/chemistry/rings.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/physics/index_permutation.h"

namespace superstep::data {
namespace {

std::vector<std::size_t> ring_sizes(const char* smiles) {
  std::vector<std::size_t> sizes;
  for (const Ring& ring : smallest_rings(parse_smiles(smiles))) sizes.push_back(ring.size());
  return sizes;
}

TEST(Rings, AreAsManyAndAsSmallAsTheyCanBe) {
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(ring_sizes("CCO"), Sizes{});
  EXPECT_EQ(ring_sizes("C1CCCCC1"), Sizes{6});
  EXPECT_EQ(ring_sizes("c1ccc2ccccc2c1"), (Sizes{6, 6}));
  EXPECT_EQ(ring_sizes("O=C1NC(=O)c2ccccc12"), (Sizes{5, 6}));
  EXPECT_EQ(ring_sizes("C1CC2CCC1C2"), (Sizes{5, 5}));                  // norbornane
  EXPECT_EQ(ring_sizes("C12C3C4C1C5C2C3C45"), (Sizes{4, 4, 4, 4, 4}));  // cubane
  EXPECT_EQ(ring_sizes("C1CC1.C1CCC1"), (Sizes{3, 4}));
}

double distance(const std::vector<PlanePoint>& at, int a, int b) {
  const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
  return std::hypot(at[i].x - at[j].x, at[i].y - at[j].y);
}

// The shortest and the longest bond.
std::pair<double, double> bonds_of(const Molecule& m, const std::vector<PlanePoint>& at) {
  std::pair<double, double> found{INFINITY, 0};
  for (const Bond& bond : m.bonds()) {
    found.first = std::min(found.first, distance(at, bond.a, bond.b));
    found.second = std::max(found.second, distance(at, bond.a, bond.b));
  }
  return found;
}

TEST(Depiction, RingsAreRegularAndChainsZigzag) {
  const Molecule styrene = parse_smiles("*CC(*)c1ccccc1");
  const auto at = depict(styrene);
  const auto [shortest, longest] = bonds_of(styrene, at);
  EXPECT_NEAR(shortest, 1, 1e-4);
  EXPECT_NEAR(longest, 1, 1e-4);
  EXPECT_NEAR(distance(at, 4, 7), 2, 1e-3);  // across the ring
  const Molecule chain = parse_smiles("CCCCCC");
  const auto zigzag = depict(chain);
  EXPECT_NEAR(distance(zigzag, 0, 2), std::sqrt(3.0), 1e-6);
  EXPECT_NEAR(distance(zigzag, 0, 4), 2 * std::sqrt(3.0), 1e-6);
  const Molecule nitrile = parse_smiles("CC#N");
  EXPECT_NEAR(distance(depict(nitrile), 0, 2), 2, 1e-6);
}

TEST(Depiction, FusedRingsShareASide) {
  const Molecule m = parse_smiles("c1ccc2ccccc2c1");
  const auto at = depict(m);
  const auto [shortest, longest] = bonds_of(m, at);
  EXPECT_NEAR(shortest, 1, 1e-3);
  EXPECT_NEAR(longest, 1, 1e-3);
  EXPECT_GT(least_distance(m, at), 1.6);
}

// What the generator makes, and some that are harder to draw: no atom on another, no bond torn.
TEST(Depiction, NoAtomLiesOnAnother) {
  const IndexPermutation shuffled(1, repeat_unit_count(), 1);
  int looked_at = 0;
  double least = INFINITY;
  for (std::uint64_t i = 0; i < 1500; ++i, ++looked_at) {
    const std::string smiles = repeat_unit(shuffled(i % repeat_unit_count())).smiles;
    const Molecule m = parse_smiles(smiles);
    const auto at = depict(m);
    const auto [shortest, longest] = bonds_of(m, at);
    EXPECT_GT(least_distance(m, at), 0.5) << smiles;
    EXPECT_GT(shortest, 0.6) << smiles;
    EXPECT_LT(longest, 1.5) << smiles;
    least = std::min(least, least_distance(m, at));
  }
  EXPECT_EQ(looked_at, 1500);
  RecordProperty("least_distance", std::to_string(least));
}

TEST(Depiction, TakesWhatIsHardToDraw) {
  for (const char* smiles :
       {"C1CC2CCC1C2", "C12C3C4C1C5C2C3C45", "C1CCC2(CC1)CCCCC2", "CC(C)(C)C(C)(C)C(C)(C)C", "C.CC.O",
        "[Na+].[Cl-]", "C1CCCCCCCCCCCCCCC1", "c1ccc2c(c1)ccc1ccccc12"}) {
    const Molecule m = parse_smiles(smiles);
    const auto at = depict(m);
    ASSERT_EQ(at.size(), m.atoms().size());
    EXPECT_GT(least_distance(m, at), 0.5) << smiles;
    for (const PlanePoint& place : at)
      EXPECT_TRUE(std::isfinite(place.x) && std::isfinite(place.y)) << smiles;
  }
  EXPECT_TRUE(depict(Molecule()).empty());
}

TEST(Depiction, TheMeasureNoticesAtomsOnEachOther) {
  const Molecule m = parse_smiles("CCC");
  EXPECT_NEAR(least_distance(m, {{0, 0}, {1, 0}, {0.1, 0}}), 0.1, 1e-12);
}

}  // namespace
}  // namespace superstep::data
