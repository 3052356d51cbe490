// superstep search, as a user has it: to its end, killed and given again, by several processes, refused.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "superstep/base/random.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/record/database.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

using nlohmann::json;

const std::string small =
    "search mlp --samples 1000 --epochs 9 --set learning-rate=1e-4..1e-1:log --set batch=64,128 --threads 1 "
    "--quiet ";

void write_pairs(const std::filesystem::path& file) {
  constexpr std::int64_t samples = 96, features = 16;
  Tensor x(ElementType::f32, {samples, features}), y(ElementType::f32, {samples, 1});
  RandomStream random(7);
  for (float& value : x.as<float>()) value = static_cast<float>(random.uniform(-1, 1));
  for (std::int64_t i = 0; i < samples; ++i) y.set(i, x.at(i * features) + 2 * x.at(i * features + 1));
  data::Hdf5Writer pairs(file);
  pairs.write("x", x);
  pairs.write("target", y);
  pairs.close();
}

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

// Its options that a run does not keep, too: who goes on is judged on as many samples as who began.
TEST(Search, JudgesAllRungsOnTheSameSamples) {
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", small + "--validate 20 --trials 4 --out s").code, 0);
  const json report = report_of(folder / "s");
  const json& best = report["trials"][report["best"].get<std::size_t>()];
  ASSERT_EQ(best["qualities"].size(), 3U);
  EXPECT_TRUE(contains(content_of(folder / "s/best.toml"), "validate = 20"));
  const Outcome again =
      run_program(folder / "", "train --config s/best.toml --no-out --quiet --json again.json");
  ASSERT_EQ(again.code, 0) << again.errors;
  const json repeated = json::parse(content_of(folder / "again.json"));
  EXPECT_EQ(repeated["metrics"]["rmse"]["value"], best["qualities"].back()["quality"]);
}

TEST(Search, RepeatsTheBestOnItsOwnThreads) {
  const ScratchFolder folder;
  const std::string call =
      "search mlp --samples 500 --epochs 3 --set batch=64,128 --trials 2 --quiet --out s ";
  ASSERT_EQ(run_program(folder / "", call + "--threads 2").code, 0);
  ASSERT_EQ(run_program(folder / "", call + "--threads 1").code, 0);
  EXPECT_TRUE(contains(content_of(folder / "s/best.toml"), "threads = 2\n"));
}

TEST(Search, TakesAllOptionsOfTheTraining) {
  const ScratchFolder folder;
  write_pairs(folder / "pairs.h5");
  ASSERT_EQ(run_program(folder / "", "onnx export mlp --out mlp.onnx").code, 0);
  const std::string call = "search mlp.onnx --data pairs.h5 --epochs 1 --threads 1 --quiet --trials 2 ";
  const Outcome outcome =
      run_program(folder / "", call + "--metrics r2,mae --metric mae --set learning-rate=1e-3,1e-2 --out s");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(report_of(folder / "s")["metric"], "mae");
  for (const auto& [rest, words] :
       {std::pair("--set learning-rate=1e-3,1e-2 --metric mse --metrics mae", "mse"),
        {"--set loss=mse,nope", "--set loss: nope"},
        {"--set learning-rate=1e-3,1e-2 --schedule nope", "nope"}}) {
    const Outcome refused = run_program(folder / "", call + rest + " --out other");
    EXPECT_EQ(refused.code, 2) << rest << "\n" << refused.errors;
    EXPECT_TRUE(contains(refused.errors, words)) << rest << "\n" << refused.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "other")) << "refused before the work";
  }
}

// However few trials there are.
TEST(Search, FailsWhereNoTrialComesToAQuality) {
  const ScratchFolder folder;
  for (const auto& [rest, words] :
       {std::pair("--weights nowhere --set batch=16,32 --trials 1", "trial 0 failed: "),
        {"--optimizer sgd --set learning-rate=1e29,1e30 --trials 2",
         "trial 0 diverged: the loss is no number"}}) {
    std::filesystem::remove_all(folder / "s");
    const Outcome outcome = run_program(
        folder / "", std::string("search mlp --samples 1000 --epochs 1 --threads 1 --out s ") + rest);
    EXPECT_EQ(outcome.code, 1) << outcome.output;
    EXPECT_TRUE(contains(outcome.errors, words)) << outcome.errors;
    EXPECT_FALSE(contains(outcome.output, "\n.")) << outcome.output;
    const json report = report_of(folder / "s");
    EXPECT_TRUE(report["over"]);
    EXPECT_TRUE(report["best"].is_null());
    for (const json& trial : report["trials"])
      EXPECT_FALSE(contains(trial["words"].get<std::string>(), "\n")) << trial["words"];
  }
}

// What Optuna was asked to queue when all trials had been drawn.
TEST(Search, TrainsWhatWasQueuedLate) {
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", small + "--trials 2 --out s").code, 0);
  {
    record::Database database(folder / "s/search.db");
    database.execute("insert into trials (number, study_id, state) values (2, 1, 'WAITING')", "write");
    record::Statement(database,
                      "insert into trial_system_attributes (trial_id, \"key\", value_json) values (?, "
                      "'fixed_params', ?)")
        .bind(database.last_id())
        .bind(std::string(R"({"learning-rate": 0.02, "batch": "64"})"))
        .run();
  }
  ASSERT_EQ(run_program(folder / "", small + "--trials 2 --out s").code, 0);
  const json report = report_of(folder / "s");
  ASSERT_EQ(report["trials"].size(), 3U);
  EXPECT_EQ(report["trials"][2]["values"], (json{{"learning-rate", "0.02"}, {"batch", "64"}}));
  EXPECT_FALSE(report["trials"][2]["qualities"].empty());
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
      {"search mlp --set metrics=r2,mae", "--set metrics: says by what"},
      {"search mlp --set validate=10,20", "--set validate: says by what"},
      {"search mlp --set samples=100,200", "--set samples: says by what"},
      {"search mlp --set data-threads=1,2", "--set data-threads: decides about the computer"},
      {"search mlp --set optimizer=adam,nope", "--set optimizer: nope"},
      {"search mlp --set monitor=rmse,nope --patience 3", "--set monitor: nope"},
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
  EXPECT_TRUE(contains(other.errors, "holds another search (options: "));
  EXPECT_TRUE(contains(other.errors, "--seed: 1 there, 2 here"));
  std::string call = small + "--trials 1 --out s";
  call.replace(call.find("--epochs 9"), 10, "--epochs 8.5");
  const Outcome longer = run_program(folder / "", call);
  EXPECT_EQ(longer.code, 2) << "though the rungs are the same";
  EXPECT_TRUE(contains(longer.errors, "--epochs: 9 there, 8.5 here")) << longer.errors;
}

}  // namespace
}  // namespace superstep
