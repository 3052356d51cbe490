// superstep search, as a user has it: to its end, killed and given again, by several processes, refused.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

using nlohmann::json;

const std::string small =
    "search mlp --samples 1000 --epochs 9 --set learning-rate=1e-4..1e-1:log --set batch=64,128 --threads 1 "
    "--quiet ";

json report_of(const std::filesystem::path& folder) {
  return json::parse(content_of(folder / "results.json"));
}

// Without what a clock says.
json findings(json report) {
  for (json& trial : report["trials"]) trial.erase("seconds");
  return report["trials"];
}

TEST(Search, TrainsTheBestToTheEndAndRepeatsIt) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", small + "--trials 9 --out s --json s.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json report = report_of(folder / "s");
  EXPECT_EQ(report["rungs"], (json{1, 3, 9}));
  ASSERT_EQ(report["trials"].size(), 9U);
  EXPECT_TRUE(report["over"]);
  int done = 0, cut = 0;
  double best = 0;
  for (const json& trial : report["trials"]) {
    done += trial["state"] == "done" ? 1 : 0;
    cut += trial["state"] == "paused" ? 1 : 0;
    if (trial["trial"] == report["best"]) best = trial["qualities"].back()["quality"];
  }
  EXPECT_GE(done, 1);
  EXPECT_GE(cut, 5) << "of nine, three went on at most";
  EXPECT_TRUE(contains(content_of(folder / "s/index.html"), "successive halving"));
  const Outcome again =
      run_program(folder / "", "train --config s/best.toml --no-out --quiet --json again.json");
  ASSERT_EQ(again.code, 0) << again.errors;
  const json repeated = json::parse(content_of(folder / "again.json"));
  EXPECT_EQ(repeated["metrics"]["rmse"]["value"].get<double>(), best);
}

// Killed with its child at any moment, it goes on to what it would have said.
TEST(Search, GoesOnWhereItWasKilled) {
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", small + "--trials 6 --out whole").code, 0);
  int kills = 0;
  for (const char* const after : {"0.15", "0.3", "0.2", "0.45", "0.25", "0.6", "30"}) {
    const Outcome outcome =
        run_program(folder / "", small + "--trials 6 --out s", std::string("timeout -s KILL ") + after);
    if (outcome.code == 0) break;
    ++kills;
  }
  EXPECT_GE(kills, 1);
  ASSERT_EQ(run_program(folder / "", small + "--trials 6 --out s").code, 0);
  EXPECT_EQ(findings(report_of(folder / "s")), findings(report_of(folder / "whole")));
}

TEST(Search, IsSharedByProcesses) {
  const ScratchFolder folder;
  const std::string call = program_under_test() + " " + small + "--trials 8 --out s";
  std::ofstream(folder / "both.sh") << call << " & first=$!\n" << call << " && wait $first\n";
  const Outcome outcome = run_program(folder / "", "--version", "sh both.sh &&");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json report = report_of(folder / "s");
  ASSERT_EQ(report["trials"].size(), 8U);
  EXPECT_TRUE(report["over"]);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(report["trials"][i]["trial"], i);
    EXPECT_FALSE(report["trials"][i]["qualities"].empty());
  }
}

TEST(Search, EndsWhenATrialReachesTheTarget) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", small + "--trials 30 --until rmse=0.6 --out s");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json report = report_of(folder / "s");
  EXPECT_LT(report["trials"].size(), 30U);
  int reached = 0;
  for (const json& trial : report["trials"]) reached += trial["state"] == "reached" ? 1 : 0;
  EXPECT_EQ(reached, 1);
  EXPECT_TRUE(report["over"]);
}

TEST(Search, ShowsWhatDiverged) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "",
                  "search mlp --samples 1000 --epochs 1 --optimizer sgd --set learning-rate=1e-3,1e30 "
                  "--trials 4 --threads 1 --out s");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "diverged: the loss is no number at step"));
}

TEST(Search, RefusesByName) {
  const ScratchFolder folder;
  const std::pair<const char*, const char*> wrong[] = {
      {"search mlp", "--set: says what is searched"},
      {"search mlp --set rate=1..2", "'rate' is no option"},
      {"search mlp --set learning-rat=1e-3,1e-2", "did you mean 'learning-rate'"},
      {"search mlp --set batch=0,16", "--set batch"},
      {"search mlp --set batch=16 --batch 3", "batch: is given twice"},
      {"search mlp --set epochs=1,2", "'epochs' is no option"},
      {"search mlp --set batch=16 --until nope=1", "nope"},
      {"search mlp --set batch=16 --metric nope", "nope"},
      {"search nope --set batch=16", "nope"},
      {"search mlp --set batch=16 --resume x", "--resume"}};
  for (const auto& [call, words] : wrong) {
    const Outcome outcome = run_program(folder / "", call);
    EXPECT_EQ(outcome.code, 2) << call << "\n" << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, words)) << call;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "search-mlp"));
  std::filesystem::create_directories(folder / "full/other");
  EXPECT_EQ(run_program(folder / "", small + "--trials 1 --out full").code, 2);
  ASSERT_EQ(run_program(folder / "", small + "--trials 1 --out s").code, 0);
  const Outcome other = run_program(folder / "", small + "--seed 2 --trials 1 --out s");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.errors, "holds another search"));
}

}  // namespace
}  // namespace superstep
