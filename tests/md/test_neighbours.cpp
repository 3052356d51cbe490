// Lists of neighbours against trying every image.
#include <gtest/gtest.h>

#include <map>

#include "superstep/physics/materials/neighbor_list.h"
#include "tests/expect_error.h"
#include "tests/md/atoms.h"

namespace superstep::md {
namespace {

data::Configuration gas(int atoms, const std::optional<Cell>& cell, std::uint64_t seed, double extent) {
  RandomStream random(seed);
  data::Configuration made{{}, {}, cell};
  for (int i = 0; i < atoms; ++i) {
    made.elements.push_back(18);
    made.positions.push_back(
        {random.uniform(-extent, extent), random.uniform(-extent, extent), random.uniform(-extent, extent)});
  }
  return made;
}

// Distances of the pairs of each atom, in order.
std::vector<std::vector<double>> listed(const Neighbours& all, double cutoff) {
  std::vector<std::vector<double>> found(all.atoms());
  for (std::size_t i = 0; i < all.atoms(); ++i) {
    for (const std::int32_t place : all.of(i)) {
      const Cartesian r{all.x()[place] - all.x()[i], all.y()[place] - all.y()[i],
                        all.z()[place] - all.z()[i]};
      if (norm(r) < cutoff) found[i].push_back(norm(r));
    }
    std::ranges::sort(found[i]);
  }
  return found;
}

std::vector<std::vector<double>> tried(const data::Configuration& atoms, double cutoff) {
  std::vector<std::vector<double>> found(atoms.positions.size());
  for (const auto& [i, j, shift] : data::neighbor_pairs(atoms.positions, atoms.cell, cutoff)) {
    const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j);
    const double r = norm(atoms.positions[b] + shift - atoms.positions[a]);
    found[a].push_back(r), found[b].push_back(r);
  }
  for (auto& each : found) std::ranges::sort(each);
  return found;
}

void expect_same(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size()) << i;
    for (std::size_t k = 0; k < a[i].size(); ++k) EXPECT_NEAR(a[i][k], b[i][k], 1e-10);
  }
}

const std::vector<std::optional<Cell>>& boxes() {
  static const std::vector<std::optional<Cell>> all{
      std::nullopt, Cell{{30, 0, 0}, {0, 30, 0}, {0, 0, 30}}, Cell{{6, 0, 0}, {2, 5, 0}, {-1, 1.5, 7}},
      Cell{{2, 0, 0}, {0, 40, 0}, {0, 0, 3}}, Cell{{9, 3, 0}, {-4, 8, 1}, {2, -2, 11}}};
  return all;
}

TEST(Neighbours, AreAllThereAre) {
  ThreadPool pool(3);
  for (const auto& box : boxes())
    for (const double cutoff : {1.0, 2.6, 5.5, 9.0}) {
      const data::Configuration atoms = gas(60, box, 7, 12);
      Neighbours lists(cutoff, 0.4);
      lists.update(atoms.positions, box, pool);
      expect_same(listed(lists, cutoff), tried(atoms, cutoff));
      for (std::size_t i = 0; i < lists.atoms(); ++i) EXPECT_EQ(lists.of(i).size() % Neighbours::lanes, 0U);
    }
}

// Atoms walk, the box breathes: nothing within the cutoff is ever missed, and lists are kept meanwhile.
TEST(Neighbours, AreAllThereAreWhileAtomsMove) {
  ThreadPool pool(2);
  for (const auto& box : boxes()) {
    data::Configuration atoms = gas(60, box, 8, 12);
    Neighbours lists(4, 0.8);
    RandomStream random(2);
    for (int step = 0; step < 60; ++step) {
      lists.update(atoms.positions, atoms.cell, pool);
      expect_same(listed(lists, 4), tried(atoms, 4));
      const double scale = box ? 1 + 0.004 * random.normal() : 1;
      for (Cartesian& p : atoms.positions)
        p = scale * (p + 0.05 * Cartesian{random.normal(), random.normal(), random.normal()});
      if (atoms.cell) atoms.cell = Cell{scale * atoms.cell->a, scale * atoms.cell->b, scale * atoms.cell->c};
    }
    EXPECT_GT(lists.builds(), 2U);
    EXPECT_LT(lists.builds(), 50U);
  }
}

TEST(Neighbours, AreTheSameOnAnyNumberOfThreadsAndFromTheirOrigin) {
  const data::Configuration atoms = gas(300, boxes()[4], 9, 12);
  ThreadPool one(1);
  Neighbours first(3, 0.5);
  first.update(atoms.positions, atoms.cell, one);
  for (const int threads : {2, 5, 64}) {
    ThreadPool pool(threads);
    Neighbours again(3, 0.5);
    again.rebuild(first.origin(), pool);
    for (std::size_t i = 0; i < first.atoms(); ++i)
      EXPECT_TRUE(std::ranges::equal(again.of(i), first.of(i))) << threads;
  }
}

TEST(Neighbours, OfOneMoleculeAreLeftOutButNotItsImages) {
  ThreadPool pool(1);
  const std::vector<Cartesian> two{{0.1, 1, 1}, {1.1, 1, 1}};
  const Cell cell{{4, 0, 0}, {0, 20, 0}, {0, 0, 20}};
  Neighbours whole(3.5, 0.1), molecule(3.5, 0.1, {0, 0});
  whole.update(two, cell, pool);
  molecule.update(two, cell, pool);
  EXPECT_EQ(listed(whole, 3.5)[0].size(), 2U);  // 1 A to the right, 3 A to the left
  ASSERT_EQ(listed(molecule, 3.5)[0].size(), 1U);
  EXPECT_NEAR(listed(molecule, 3.5)[0][0], 3, 1e-12);
}

TEST(Neighbours, RefuseWhatHasNone) {
  ThreadPool pool(1);
  EXPECT_THROW(Neighbours(0, 1), Error);
  EXPECT_THROW(Neighbours(1, 0), Error);
  Neighbours lists(3, 0.5);
  const std::vector<Cartesian> one{{0, 0, 0}}, lost{{std::nan(""), 0, 0}};
  expect_error(ErrorCode::invalid_argument, {"no volume"}, [&] { lists.update(one, Cell{}, pool); });
  expect_error(ErrorCode::invalid_argument, {"0.05 A thick"}, [&] {
    lists.update(one, Cell{{0.05, 0, 0}, {0, 5, 0}, {0, 0, 5}}, pool);
  });
  expect_error(ErrorCode::invalid_argument, {"atom 1 is not at a finite position"},
               [&] { lists.update(lost, boxes()[1], pool); });
  lists.update({}, {}, pool);
  EXPECT_EQ(lists.atoms(), 0U);
}

}  // namespace
}  // namespace superstep::md
