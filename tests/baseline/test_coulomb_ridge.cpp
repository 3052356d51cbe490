#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/file.h"
#include "superstep/baseline/materials/coulomb_ridge.h"
#include "superstep/file/hdf5/hdf5.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"
#include "tests/physics/force_checks.h"

namespace superstep::baseline {
namespace {

TEST(CoulombMatrix, HasItsValuesAndInvariances) {
  const data::Configuration water = {{8, 1, 1}, {{0, 0, 0}, {1, 0, 0}, {0, 2, 0}}, {}};
  const std::vector<float> made = sorted_coulomb_matrix(water, 4);
  ASSERT_EQ(made.size(), 10u);
  EXPECT_FLOAT_EQ(made[0], static_cast<float>(0.5 * std::pow(8, 2.4)));
  EXPECT_FLOAT_EQ(made[1], 8);  // the nearer hydrogen has the larger row
  EXPECT_FLOAT_EQ(made[2], 0.5f);
  EXPECT_FLOAT_EQ(made[3], 4);
  EXPECT_FLOAT_EQ(made[4], static_cast<float>(1 / std::sqrt(5.0)));
  EXPECT_EQ(made[9], 0);
  const auto rotation = data::random_rotation(3);
  data::Configuration turned = {{1, 8, 1}, {}, {}};
  for (const std::size_t i : {2u, 0u, 1u})
    turned.positions.push_back(data::rotated(rotation, water.positions[i]));
  const std::vector<float> same = sorted_coulomb_matrix(turned, 4);
  for (std::size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], same[i], 1e-5f);
}

TEST(CoulombRidge, BeatsTheLineOnClustersNotSeen) {
  const ScratchFolder folder;
  generate("schnet", folder / "water.h5", 400, {"least=2", "most=3", "heating=100"});
  const Report report = run_baseline("schnet", folder / "water.h5", folder / "out.csv");
  std::printf("%s", report.text.c_str());
  EXPECT_LT(metric(report, "mae"), 0.8 * metric(report, "floor_mae"));
  EXPECT_LT(metric(report, "reference_error"), 1e-12);
  EXPECT_TRUE(std::filesystem::exists(folder / "out.csv"));
}

TEST(CoulombRidge, ReadsBothFormatsAlike) {
  const ScratchFolder folder;
  generate("schnet", folder / "a.h5", 4, {"most=4"});
  generate("schnet", folder / "a.xyz", 4, {"most=4"});
  const auto hdf5 = read_clusters(folder / "a.h5"), xyz = read_clusters(folder / "a.xyz");
  ASSERT_EQ(hdf5.size(), xyz.size());
  for (std::size_t i = 0; i < xyz.size(); ++i) {
    EXPECT_EQ(hdf5[i].configuration.positions, xyz[i].configuration.positions);
    EXPECT_EQ(hdf5[i].configuration.elements, xyz[i].configuration.elements);
    EXPECT_EQ(hdf5[i].energy, xyz[i].energy);
  }
}

// What training refuses too, in its words: the place of a frame, counted from 1, and the atoms.
TEST(CoulombRidge, NamesTheFrameAndTheAtoms) {
  const ScratchFolder folder;
  const std::string labelled = "Properties=species:S:1:pos:R:3 energy=1";
  const std::string good = "3\n" + labelled + "\nO 0 0 0\nH 1 0 0\nH 0 1 0\n";
  const auto refused = [&](const std::string& frame, const std::string& message) {
    write_file_atomically(folder / "bad.xyz", good + frame);
    expect_error(ErrorCode::bad_file, {"bad.xyz, frame 2", message},
                 [&] { read_clusters(folder / "bad.xyz"); });
  };
  refused("1\n\nH 0 0 0\n", "has no energy to learn from");
  refused("3\n\nO 0 0 0\nH 1 0 0\nH 1 0 0\n", "atoms 2 (H) and 3 (H) are at one place");
  refused("1\n" + labelled + " Lattice=\"9 0 0 0 9 0 0 0 9\"\nH 0 0 0\n", "has a periodic box");
  refused("1\n" + labelled + "\nH 0 0 0\n", "not a water cluster");
  const auto two = [](std::vector<double> values, const Shape& shape) {
    values.insert(values.end(), values.begin(), values.end());
    return Tensor::from<double>(shape, values);
  };
  data::Hdf5Writer file(folder / "bad.h5");
  file.write("z", two({8, 1, 1}, {2, 3}));
  Tensor pos = two({0, 0, 0, 1, 0, 0, 0, 1, 0}, {2, 3, 3});
  for (std::int64_t k = 0; k < 3; ++k) pos.set(15 + k, pos.at(12 + k));
  file.write("pos", pos);
  file.write("energy", two({-1}, {2}));
  file.close();
  expect_error(ErrorCode::bad_file, {"bad.h5, cluster 2", "atoms 2 (H) and 3 (H) are at one place"},
               [&] { read_clusters(folder / "bad.h5"); });
}

}  // namespace
}  // namespace superstep::baseline
