// Simulations in folders: stopped at any step they go on with the same bits, and what they say is right.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/watch.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/md/study/analysis.h"
#include "superstep/md/study/page.h"
#include "superstep/md/study/simulation.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::md {
namespace {

namespace fs = std::filesystem;

Settings argon_settings(Ensemble ensemble, std::int64_t steps) {
  Settings s;
  s.potential = "lennard-jones";
  s.potential_settings = {"cutoff=7"};
  s.start = "a crystal";
  s.protocol = {.ensemble = ensemble,
                .timestep = 5,
                .kelvin = 90,
                .bath_time = 60,
                .pressure_time = 300,
                .compressibility = 300,
                .seed = 4};
  s.velocity_kelvin = 90;
  s.skin = 0.4;
  s.steps = steps;
  s.thermo_every = 3;
  s.frame_every = 7;
  return s;
}

Structure argon() { return make_lattice("fcc:Ar:5.4:2x3x2", 1); }

struct Files {
  std::string trajectory, thermo, last;
  friend bool operator==(const Files&, const Files&) = default;
};
Files files_of(const fs::path& folder) {
  return {read_text_file(folder / "trajectory.xyz"), read_text_file(folder / "thermo.csv"),
          read_text_file(folder / "last.xyz")};
}

Files whole(const fs::path& folder, const Settings& settings, int threads, const Structure& start = argon()) {
  RunFolder run = RunFolder::create(folder, settings, start);
  simulate(run, {.threads = threads});
  return files_of(folder);
}

TEST(Simulation, GoesOnWithTheSameBitsFromEveryStep) {
  const ScratchFolder scratch;
  for (const Ensemble ensemble : {Ensemble::nve, Ensemble::nvt, Ensemble::npt}) {
    constexpr std::int64_t steps = 60;
    const int kind = static_cast<int>(ensemble);
    const Files reference = whole(scratch / fmt::format("whole{}", kind), argon_settings(ensemble, steps), 1);
    for (std::int64_t k = 1; k < steps; k += 1) {
      const fs::path folder = scratch / fmt::format("parts{}-{}", kind, k);
      whole(folder, argon_settings(ensemble, k), 1 + static_cast<int>(k % 3));
      {
        // What a killed process wrote after its last state is cut away. (The last step has a frame of its
        // own.)
        RunFolder run = RunFolder::open(folder);
        run.change_steps(steps);
      }
      RunFolder run = RunFolder::open(folder);
      simulate(run, {.threads = 1 + static_cast<int>(k % 2)});
      const Files found = files_of(folder);
      ASSERT_EQ(found.last, reference.last) << kind << " from step " << k;
    }
  }
}

// Asked to stop again and again: not a byte is another.
TEST(Simulation, StoppedAnywhereItsFilesAreTheSame) {
  const ScratchFolder scratch;
  const Settings settings = argon_settings(Ensemble::npt, 80);
  const Files reference = whole(scratch / "whole", settings, 1);
  RunFolder run = RunFolder::create(scratch / "stopped", settings, argon());
  std::size_t sittings = 0;
  for (;; ++sittings) {
    try {
      simulate(run, {.threads = 2, .checkpoint_seconds = 0.001});
      break;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::interrupted);
      EXPECT_TRUE(contains(error.hint(), "--resume"));
      clear_interrupt();
    }
    // A process that was killed leaves more in the files than the state knows.
    append_line(scratch / "stopped/trajectory.xyz", "24");
    append_line(scratch / "stopped/thermo.csv", "half a row");
    ASSERT_LT(sittings, 3U);
  }
  EXPECT_EQ(files_of(scratch / "stopped"), reference);
  request_interrupt();
  RunFolder again = RunFolder::create(scratch / "at once", settings, argon());
  EXPECT_THROW(simulate(again, {}), Error);
  clear_interrupt();
  append_line(scratch / "at once/trajectory.xyz", "24");
  append_line(scratch / "at once/thermo.csv", "half a row");
  simulate(again, {});
  EXPECT_EQ(files_of(scratch / "at once"), reference);
}

TEST(Simulation, HasTheSameBitsOnAnyNumberOfThreads) {
  const ScratchFolder scratch;
  for (const Bath bath : {Bath::rescaling, Bath::langevin}) {
    Settings settings = argon_settings(Ensemble::nvt, 25);
    settings.protocol.bath = bath;
    const Structure start = make_lattice("fcc:Ar:5.4:4", 1);
    const int kind = static_cast<int>(bath);
    const Files one = whole(scratch / fmt::format("one{}", kind), settings, 1, start);
    for (const int threads : {2, 3, 7, 64})
      EXPECT_EQ(whole(scratch / fmt::format("{}-{}", threads, kind), settings, threads, start), one)
          << threads;
  }
}

TEST(Simulation, KeepsTheLastGoodFrameOfOneThatDiverges) {
  const ScratchFolder scratch;
  Settings settings = argon_settings(Ensemble::nve, 5000);
  settings.protocol.timestep = 150;
  RunFolder run = RunFolder::create(scratch / "run", settings, argon());
  expect_error(ErrorCode::diverged, {"would move atom", "last.xyz", "--timestep"},
               [&] { simulate(run, {}); });
  const auto frames = data::read_xyz(scratch / "run/trajectory.xyz");
  const auto last = data::read_xyz(scratch / "run/last.xyz");
  ASSERT_EQ(last.size(), 1U);
  ASSERT_GE(frames.size(), 1U);
  EXPECT_EQ(frames.back().info.at("step"), last[0].info.at("step"));
  EXPECT_EQ(frames.back().configuration.positions, last[0].configuration.positions);
  EXPECT_TRUE(std::isfinite(*last[0].labels.energy));
}

TEST(Simulation, BeginsWithTheVelocitiesOfItsFile) {
  const ScratchFolder scratch;
  Settings settings = argon_settings(Ensemble::nve, 20);
  whole(scratch / "first", settings, 1);
  settings.velocity_kelvin = -1;
  settings.steps = 1;
  const Structure last = read_structure(scratch / "first/last.xyz", 0);
  ASSERT_EQ(last.velocities.size(), last.atoms.positions.size());
  whole(scratch / "second", settings, 1, last);
  const auto frames = data::read_xyz(scratch / "second/trajectory.xyz");
  EXPECT_EQ(frames[0].velocities, last.velocities);
}

TEST(Simulation, NamesWhatIsWrongWithAFolder) {
  const ScratchFolder scratch;
  expect_error(ErrorCode::not_found, {"holds no simulation"}, [&] { RunFolder::open(scratch / "none"); });
  whole(scratch / "run", argon_settings(Ensemble::nve, 3), 1);
  expect_error(ErrorCode::invalid_argument, {"holds a simulation already", "--resume"},
               [&] { RunFolder::create(scratch / "run", argon_settings(Ensemble::nve, 3), argon()); });
  const std::string state = read_text_file(scratch / "run/state.safetensors");
  write_file_atomically(scratch / "run/state.safetensors",
                        std::string_view(state).substr(0, state.size() / 2));
  RunFolder damaged = RunFolder::open(scratch / "run");
  expect_error(ErrorCode::bad_file, {"state.safetensors"}, [&] { simulate(damaged, {}); });
  write_file_atomically(scratch / "run/state.safetensors", std::string_view(state));
  fs::resize_file(scratch / "run/trajectory.xyz", 10);
  expect_error(ErrorCode::bad_file, {"trajectory.xyz", "has 10 bytes of"}, [&] { simulate(damaged, {}); });
}

TEST(Simulation, NamesBoundariesAndPotentialsThatDoNotSuit) {
  const ScratchFolder scratch;
  Settings settings = argon_settings(Ensemble::npt, 3);
  Structure open = argon();
  open.atoms.cell.reset();
  RunFolder run = RunFolder::create(scratch / "open", settings, open);
  expect_error(ErrorCode::invalid_argument, {"no pressure to keep"}, [&] { simulate(run, {}); });
  settings.potential = "lennard-jone";
  settings.potential_settings = {};
  expect_error(ErrorCode::invalid_argument, {"did you mean 'lennard-jones'?"},
               [&] { make_force_field(settings, open.atoms, 1); });
}

// --- what is made of the files

TEST(Analysis, BlockMeansHaveTheErrorOfIndependentValues) {
  RandomStream random(8);
  std::vector<double> values;
  for (int i = 0; i < 10000; ++i) values.push_back(3 + random.normal());
  const Mean found = block_mean(values);
  EXPECT_NEAR(found.value, 3, 0.05);
  EXPECT_NEAR(found.error, 0.01, 0.007);
  EXPECT_TRUE(std::isnan(block_mean(std::vector<double>{1, 2, 3}).error));
}

// Points at random have g = 1 everywhere; of a crystal the first shell holds its twelve neighbours.
TEST(Analysis, RadialDistributionsOfGasAndCrystal) {
  const ScratchFolder scratch;
  Settings settings = argon_settings(Ensemble::nve, 0);
  settings.potential_settings = {"element=any", "epsilon=0", "cutoff=3"};
  Structure gas = make_lattice("sc:HeNe:4:10x10x20", 1);
  gas.atoms.cell = Cell{{40, 0, 0}, {0, 40, 0}, {0, 0, 40}};
  RandomStream random(2);
  for (Cartesian& p : gas.atoms.positions)
    p = {random.uniform(0, 40), random.uniform(0, 40), random.uniform(0, 40)};
  RunFolder run = RunFolder::create(scratch / "gas", settings, gas);
  ThreadPool pool(2);
  simulate(run, {});
  const Analysis found = analyse(run, pool);
  ASSERT_EQ(found.pairs.size(), 3U);
  EXPECT_EQ(found.pairs[1].label, "He-Ne");
  for (const PairDistribution& pair : found.pairs)
    for (std::size_t k = 60; k < pair.g.size(); ++k) {
      const double r = (static_cast<double>(k) + 0.5) * found.bin_width;
      // Of like atoms each pair once: half of a thousand times a thousand.
      const double expected_count = 1000.0 * 500 / 64000 * 4 * 3.14159265 * r * r * found.bin_width;
      EXPECT_NEAR(pair.g[k], 1, 6 / std::sqrt(expected_count)) << pair.label << " at " << r;
    }
  whole(scratch / "crystal", argon_settings(Ensemble::nve, 0), 1, make_lattice("fcc:Ar:5.4:4", 1));
  const RunFolder crystal = RunFolder::open(scratch / "crystal");
  const Analysis shells = analyse(crystal, pool);
  double neighbours = 0;
  const double density = 4 / std::pow(5.4, 3);
  for (std::size_t k = 0; k < shells.pairs[0].g.size(); ++k) {
    const double inner = static_cast<double>(k) * shells.bin_width, outer = inner + shells.bin_width;
    if (outer > 4.5) break;
    neighbours += shells.pairs[0].g[k] * density * 4.0 / 3 * 3.14159265358979 *
                  (outer * outer * outer - inner * inner * inner) * 255 / 256;
  }
  EXPECT_NEAR(neighbours, 12, 1e-6);
}

// Free flight: the mean squared displacement is that of the mean square velocity; speeds are Maxwell and
// Boltzmann's.
TEST(Analysis, DisplacementsAndSpeedsOfFreeAtoms) {
  const ScratchFolder scratch;
  Settings settings = argon_settings(Ensemble::nve, 700);
  settings.potential_settings = {"epsilon=0", "cutoff=3"};
  const Structure start = make_lattice("fcc:Ar:5.4:8", 1);
  RunFolder run = RunFolder::create(scratch / "free", settings, start);
  const Sitting sitting = simulate(run, {.threads = 2});
  ThreadPool pool(2);
  const Analysis found = analyse(run, pool);
  double squares = 0;
  const auto frames = data::read_xyz(scratch / "free/trajectory.xyz");
  for (const Cartesian& v : frames[0].velocities)
    squares += dot(v, v) / static_cast<double>(frames[0].velocities.size());
  ASSERT_GT(found.lag.size(), 10U);
  for (std::size_t k = 0; k < found.lag.size(); ++k)
    EXPECT_NEAR(found.displacement[k], squares * 1e6 * found.lag[k] * found.lag[k],
                1e-6 * (1 + found.displacement[k]));
  double most = 0;
  for (std::size_t k = 0; k < found.speed.size(); ++k)
    most = std::max(most, std::abs(found.found[k] - found.expected[k]));
  EXPECT_LT(most, 0.2);  // of 2,048 atoms some 120 are in a bin at the top: one in fifty lies 0.15 off
  EXPECT_NEAR(found.drift, 0, 1e-6);
  const std::string page = page_of(run.settings(), found, sitting).to_html();
  for (const char* words : {"conserved energy", "Maxwell and Boltzmann", "radial distribution", "ns/day"})
    EXPECT_TRUE(contains(page, words));
}

TEST(Settings, ReadBackAsTheyWereAndNameWhatIsWrong) {
  const Settings settings = argon_settings(Ensemble::npt, 12);
  nlohmann::json json = to_json(settings);
  EXPECT_EQ(to_json(settings_from_json(json, "run.json")), json);
  json["bath"] = "nose";
  expect_error(ErrorCode::bad_file, {"run.json", "bath is 'nose'"},
               [&] { settings_from_json(json, "run.json"); });
  json.erase("bath");
  expect_error(ErrorCode::bad_file, {"has no bath"}, [&] { settings_from_json(json, "run.json"); });
}

}  // namespace
}  // namespace superstep::md
