#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/baseline/materials/metal_fit.h"
#include "superstep/file/atoms/extxyz.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"
#include "tests/physics/force_checks.h"

namespace superstep::baseline {
namespace {

data::Configuration dimer(double r) { return {{18, 18}, {{0, 0, 0}, {r, 0, 0}}, {}}; }

TEST(MetalPotentials, LennardJonesDimer) {
  const LennardJones<double> argon{0.0103, 3.405};
  const data::SmoothCutoff far{100, 100};
  std::vector<double> forces(6);
  const double least = std::pow(2.0, 1.0 / 6) * argon.sigma;
  const auto energy = [&](double r) { return evaluate_potential(argon, frame_pairs(dimer(r), far), forces); };
  EXPECT_NEAR(energy(least), -argon.epsilon, 1e-12);
  for (const double force : forces) EXPECT_NEAR(force, 0, 1e-12);
  EXPECT_GT(energy(least * 1.01), -argon.epsilon);
  EXPECT_GT(energy(least * 0.99), -argon.epsilon);
}

TEST(MetalPotentials, ForcesAreDifferencesOfTheEnergy) {
  data::Configuration c = data::face_centred_cubic(29, 3.61, 2);
  RandomStream random(1);
  for (data::Cartesian& p : c.positions)
    p += 0.2 * data::Cartesian{random.normal(), random.normal(), random.normal()};
  const data::SmoothCutoff cutoff{4.5, 5.5};
  const auto check = [&](const auto& potential) {
    const auto field = [&](std::span<const data::Cartesian> positions, std::span<data::Cartesian> out) {
      c.positions.assign(positions.begin(), positions.end());
      std::vector<double> forces(3 * positions.size());
      const double energy = evaluate_potential(potential, frame_pairs(c, cutoff), forces);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = {forces[3 * i], forces[3 * i + 1], forces[3 * i + 2]};
      return energy;
    };
    return data::force_error(std::vector(c.positions), field);
  };
  EXPECT_LT(check(LennardJones<double>{0.4, 2.3}), 1e-6);
  EXPECT_LT(check(Gupta<double>{0.0855, 10.96, 1.224, 2.278, 2.556}), 1e-6);
}

TEST(MetalFit, ManyBodyBeatsPairOnFramesNotSeen) {
  const ScratchFolder folder;
  generate("deepmd", folder / "cu.xyz", 64, {"cells=2", "frames=2", "equilibration=200", "cutoff=1.6"});
  const Report report =
      run_baseline("deepmd", folder / "cu.xyz", folder / "out.csv", {"frames=20", "cutoff=5.5"});
  std::printf("%s", report.text.c_str());
  EXPECT_LT(metric(report, "force_rmse"), 0.5 * metric(report, "floor_force_rmse"));
  EXPECT_LT(metric(report, "energy_rmse"), 0.5 * metric(report, "floor_energy_rmse"));
  EXPECT_GT(metric(report, "force_r2"), 0.95);
  EXPECT_TRUE(std::filesystem::exists(folder / "out.csv"));
}

TEST(MetalFit, ReadsItsThreeFormatsAlike) {
  const ScratchFolder folder;
  const std::vector<std::string> small = {"cells=1", "equilibration=10", "cutoff=1"};
  for (const char* name : {"a.xyz", "a.h5", "a"}) generate("deepmd", folder / name, 5, small);
  const MetalFrames xyz = read_metal_frames(folder / "a.xyz"), hdf5 = read_metal_frames(folder / "a.h5"),
                    set = read_metal_frames(folder / "a");
  EXPECT_EQ(xyz.trajectory, hdf5.trajectory);
  for (std::size_t i = 0; i < 5; ++i)
    for (const MetalFrames* other : {&hdf5, &set}) {
      EXPECT_EQ(xyz.frames[i].configuration.positions, other->frames[i].configuration.positions);
      EXPECT_EQ(xyz.frames[i].configuration.elements, other->frames[i].configuration.elements);
      EXPECT_EQ(xyz.frames[i].labels.forces, other->frames[i].labels.forces);
      EXPECT_EQ(xyz.frames[i].labels.energy, other->frames[i].labels.energy);
    }
}

TEST(MetalFit, RefusesFramesItCannotUse) {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& text, const std::string& message) {
    write_file_atomically(folder / "a.xyz", text);
    expect_error(ErrorCode::bad_file, {"a.xyz, frame 1", message},
                 [&] { read_metal_frames(folder / "a.xyz"); });
  };
  refused("1\n\nCu 0 0 0\n", "without energy and forces");
  refused("1\nenergy=1 Properties=species:S:1:pos:R:3:forces:R:3\nCu 0 0 0 0 0 0\n",
          "without a periodic box");
  refused(
      "2\nenergy=1 Lattice=\"5 0 0 0 5 0 0 0 5\" Properties=species:S:1:pos:R:3:forces:R:3\n"
      "Cu 0 0 0 0 0 0\nNi 2 0 0 0 0 0\n",
      "more than one element");
}

}  // namespace
}  // namespace superstep::baseline
