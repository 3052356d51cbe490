// superstep md: simulations from the command line, and what is said when they are wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "superstep/base/file.h"
#include "superstep/file/atoms/extxyz.h"
#include "tests/cli/page_commands.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

constexpr const char* argon = "md lennard-jones --lattice fcc:Ar:5.4:3 --set cutoff=7 --temperature 60 ";

TEST(Md, FillsItsFolder) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", std::string(argon) + "--steps 200 --threads 2 --out run --json r.json");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  for (const char* words : {"NVE", "drift of the conserved energy", "ns/day", "written: run/index.html"})
    EXPECT_TRUE(contains(outcome.output, words));
  for (const char* name :
       {"run.json", "start.xyz", "state.safetensors", "trajectory.xyz", "thermo.csv", "last.xyz", "rdf.csv",
        "displacement.csv", "speeds.csv", "index.html", "result.json"})
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / name)) << name;
  const nlohmann::json result = nlohmann::json::parse(content_of(folder / "r.json"));
  EXPECT_EQ(result["command"], "md");
  EXPECT_EQ(result["config"]["atoms"], 108);
  const auto frames = data::read_xyz(folder / "run/trajectory.xyz");
  EXPECT_EQ(frames.size(), 101U);
  EXPECT_EQ(frames.back().velocities.size(), 108U);
  EXPECT_TRUE(frames.back().info.contains("stress"));
}

// A signal comes once a state is kept. TERM: a shell's jobs do not hear INT.
constexpr const char* stop_when_kept =
    "sh -c '\"$@\" & while kill -0 $! && ! test -s long/state.safetensors; do sleep 0.02; done 2>/dev/null; "
    "sleep 0.1; "
    "kill $!; wait $!' sh";

TEST(Md, GoesOnWhereItWasStopped) {
  const ScratchFolder folder;
  const std::string call = std::string(argon) + "--ensemble npt --quiet ";
  ASSERT_EQ(run_program(folder / "", call + "--steps 150 --out whole").code, 0);
  ASSERT_EQ(run_program(folder / "", call + "--steps 70 --out parts --threads 3").code, 0);
  ASSERT_EQ(run_program(folder / "", "md --resume parts --steps 150 --threads 1 --quiet").code, 0);
  EXPECT_EQ(content_of(folder / "parts/last.xyz"), content_of(folder / "whole/last.xyz"));
  const Outcome stopped = run_program(folder / "", call + "--steps 100000000 --out long", stop_when_kept);
  EXPECT_EQ(stopped.code, 130);
  EXPECT_TRUE(contains(stopped.errors, "superstep md --resume long"));
  const auto kept = data::read_xyz(folder / "long/last.xyz");
  const std::string next = std::to_string(std::stoll(kept.at(0).info.at("step")) + 5);
  EXPECT_EQ(run_program(folder / "", "md --resume long --steps " + next).code, 0);
}

TEST(Md, SaysWhatIsWrongAndWhere) {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& call, int code, std::initializer_list<const char*> words) {
    const Outcome outcome = run_program(folder / "", "md " + call);
    EXPECT_EQ(outcome.code, code) << call;
    for (const char* each : words) EXPECT_TRUE(contains(outcome.errors, each)) << call;
  };
  refused("", 2, {"which potential?", "--list"});
  refused("lennard-jones --lattice fcc:Ar:5.4:2", 2, {"into which folder?"});
  refused("lennard-jones --out a", 2, {"which atoms?"});
  refused("lenard-jones --lattice fcc:Ar:5.4:2 --out a", 2, {"did you mean 'lennard-jones'?"});
  refused("lennard-jones --lattice fcc:Ar:5.4 --out a", 2, {"has 3 parts, not four", "fcc:Cu:3.61:5x5x5"});
  refused("lennard-jones --lattice hcp:Ar:5.4:2 --out a", 2, {"there is no lattice 'hcp'"});
  refused("lennard-jones --lattice fcc:Xx:5.4:2 --out a", 2, {"'Xx' is no element"});
  refused("sutton-chen --lattice bcc:Fe:2.87:3 --out a", 2, {"atom 1 is Fe"});
  refused("lennard-jones --structure none.xyz --out a", 1, {"none.xyz"});
  refused("lennard-jones --lattice fcc:Ar:5.4:2 --set cutof=3 --out a", 2, {"cutoff"});
  refused("--resume a", 1, {"holds no simulation"});
  refused("--resume a --timestep 2", 2, {"--timestep"});
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  write_file_atomically(
      folder / "two.xyz",
      std::string_view("2\npbc=\"F F F\" Properties=species:S:1:pos:R:3\nAr 0 0 0\nAr 0.01 0 0\n"));
  refused("lennard-jones --structure two.xyz --out b", 2, {"atoms 1 and 2 are at one place"});
  refused("lennard-jones --structure two.xyz --own-velocities --out c", 2, {"two.xyz: has no velocities"});
  const Outcome small = run_program(folder / "", "md sutton-chen --lattice fcc:Cu:3.61:1 --steps 5 --out d");
  EXPECT_EQ(small.code, 0) << small.errors;
  EXPECT_TRUE(contains(small.output, "less than once the cutoff"));
  refused("lennard-jones --lattice fcc:Ar:5.4:3 --temperature 100 --timestep 300 --steps 5000 --out e", 1,
          {"e: step", "would move atom", "last.xyz"});
  EXPECT_EQ(data::read_xyz(folder / "e/last.xyz").size(), 1U);
}

// What moves the atoms is what the same run says of the same atoms.
TEST(Md, TakesTheForcesOfATrainedRun) {
  const ScratchFolder folder;
  for (const char* call :
       {"generate schnet --samples 24 --set most=4 --out clusters.xyz",
        "train schnet --data clusters.xyz --set width=16 --set blocks=2 --steps 4 --out model",
        "infer schnet --weights model --input clusters.xyz --output answers.xyz",
        "md model --structure clusters.xyz --temperature 50 --steps 5 --out run --frame-every 1"}) {
    const Outcome outcome = run_program(folder / "", std::string(call) + " --threads 2");
    ASSERT_EQ(outcome.code, 0) << call << "\n" << outcome.errors;
  }
  const data::XyzFrame answer = data::read_xyz(folder / "answers.xyz").back();
  const auto frames = data::read_xyz(folder / "run/trajectory.xyz");
  ASSERT_EQ(frames.size(), 6U);
  ASSERT_EQ(frames[0].labels.forces.size(), answer.labels.forces.size());
  EXPECT_NEAR(*frames[0].labels.energy, *answer.labels.energy, 1e-5 * std::abs(*answer.labels.energy));
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < answer.labels.forces.size(); ++i) {
    largest = std::max(largest, norm(answer.labels.forces[i]));
    apart = std::max(apart, norm(answer.labels.forces[i] - frames[0].labels.forces[i]));
  }
  EXPECT_LT(apart, 1e-4 * largest);
  EXPECT_GT(norm(frames[5].configuration.positions[0] - frames[0].configuration.positions[0]), 0);
  const Outcome energies = run_program(folder / "",
                                       "train schnet --data clusters.xyz --set width=8 --set blocks=1 --set "
                                       "forces=0 --steps 2 --out energies");
  ASSERT_EQ(energies.code, 0) << energies.errors;
  const Outcome refused = run_program(folder / "", "md energies --structure clusters.xyz --out no");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(contains(refused.errors, "was trained without forces"));
  const Outcome boxed = run_program(folder / "", "md model --water 8 --out no");
  EXPECT_EQ(boxed.code, 2);
  EXPECT_TRUE(contains(boxed.errors, "is for open space, the structure has a box"));
}

// The commands of the page, in their order, with few steps.
TEST(Md, CommandsOfThePageRun) {
  const ScratchFolder folder;
  const std::string page = content_of(std::filesystem::path(SUPERSTEP_SOURCE) / "docs/molecular-dynamics.md");
  std::size_t tried = 0;
  for (std::string command : commands_of(page)) {
    if (!command.starts_with("md ")) {  // data and a trained model, as small as they can be
      command = std::regex_replace(command, std::regex("--samples \\d+"), "--samples 24");
      if (command.starts_with("train")) command += " --set width=8 --set blocks=1 --steps 2";
    } else {
      command = std::regex_replace(command, std::regex("--steps \\d+"), "--steps 12");
      if (command.find("--list") == std::string::npos && command.find("--options") == std::string::npos &&
          command.find("--steps") == std::string::npos)
        command += " --steps 12";
      command = std::regex_replace(command, std::regex("--relax [0-9.]+"), "--relax 5");
    }
    const Outcome outcome = run_program(folder / "", command + " --threads 2");
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.errors;
    ++tried;
  }
  EXPECT_GE(tried, 8U);
}

}  // namespace
}  // namespace superstep
