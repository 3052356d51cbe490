// What a run writes down while it goes on: its folder from before the first step to the last checkpoint, and
// how often it saves.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/run/train/run_keeper.h"
#include "superstep/run/train/train_observer.h"
#include "tests/expect_error.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const json kept_config{{"workload", "mlp"}}, kept_host{{"host", "here"}};

Checkpoint keeper_checkpoint(std::int64_t step) {
  Checkpoint checkpoint{.workload = "mlp", .step = step};
  checkpoint.states = {{"w", Tensor::full(ElementType::f32, {2}, static_cast<double>(step))}};
  checkpoint.signature = state_signature(checkpoint.states);
  return checkpoint;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class Keeping : public ::testing::Test {
 protected:
  fs::path run() const { return folder_ / "run"; }
  ScratchFolder folder_;
};

TEST_F(Keeping, WithoutAFolderNothingIsKept) {
  RunKeeper keeper("mlp", {}, false, true);
  keeper.begin(kept_config, 0, kept_host);
  EXPECT_FALSE(keeper.writes());
  EXPECT_FALSE(keeper.newest());
  EXPECT_NO_THROW(keeper.log({{"step", 1}}));
}

TEST_F(Keeping, OfSeveralRanksTheFirstWrites) {
  {
    RunKeeper other("mlp", run(), false, false);
    other.begin(kept_config, 0, kept_host);
    EXPECT_FALSE(other.writes());
    other.log({{"step", 1}});
  }
  EXPECT_FALSE(fs::exists(run()));
}

TEST_F(Keeping, AFolderOfARunThatDidNotBeginIsTakenAway) {
  { const RunKeeper made("mlp", run(), false, true); }
  EXPECT_FALSE(fs::exists(run()));
  fs::create_directories(run());
  std::ofstream(run() / "notes.txt") << "of the user";
  { const RunKeeper found("mlp", run(), false, true); }
  EXPECT_TRUE(fs::exists(run() / "notes.txt"));
}

TEST_F(Keeping, IsLockedFromBeforeTheWork) {
  const RunKeeper first("mlp", run(), false, true);
  expect_error(ErrorCode::io, {"is being written to by process"},
               [&] { const RunKeeper second("mlp", run(), false, true); });
}

TEST_F(Keeping, RefusesBeforeTheWork) {
  expect_error(ErrorCode::not_found, {"is not the folder of a training run"},
               [&] { const RunKeeper absent("mlp", run(), true, true); });
  {
    RunKeeper begun("mlp", run(), false, true);
    begun.begin(kept_config, 0, kept_host);
  }
  expect_error(ErrorCode::invalid_argument, {"holds a training run already"},
               [&] { const RunKeeper again("mlp", run(), false, true); });
  EXPECT_TRUE(fs::exists(run() / "config.json")) << "a refusal takes nothing away";
}

TEST_F(Keeping, KeepsTheNewestTwoAndSaysHowToGoOn) {
  RunKeeper keeper("mlp", run(), false, true);
  keeper.begin(kept_config, 0, kept_host);
  for (const std::int64_t step : {3, 7, 12}) keeper.save(keeper_checkpoint(step));
  EXPECT_EQ(names_in(run() / "checkpoints"),
            (std::vector<std::string>{"step-00000007.safetensors", "step-00000012.safetensors"}));
  EXPECT_EQ(keeper.how_to_go_on(), "go on with: superstep train mlp --resume " + run().string());
  keeper.save(keeper_checkpoint(12));
  EXPECT_EQ(names_in(run() / "checkpoints").size(), 2U) << "saved twice, there once";
}

TEST_F(Keeping, GoesOnWhereTheNewestCheckpointIs) {
  {
    RunKeeper first("mlp", run(), false, true);
    EXPECT_FALSE(first.newest()) << "a new run has none";
    first.begin(kept_config, 0, kept_host);
    first.save(keeper_checkpoint(4));
    for (const int step : {2, 4, 6}) first.log({{"step", step}});
  }
  RunKeeper second("mlp", run(), true, true);
  ASSERT_EQ(second.newest()->step, 4);
  second.begin({{"workload", "mlp"}, {"steps", 9}}, 4, kept_host);
  EXPECT_EQ(second.directory().read_log().size(), 2U);
  EXPECT_EQ(RunDirectory::open(run()).config().at("steps"), 9);
  EXPECT_EQ(json::parse(std::ifstream(run() / "environment.json")).size(), 2U) << "a record a sitting";
}

// The lock is ours: what another process was writing there is half for ever.
TEST_F(Keeping, TidiesAwayWhatAKilledRunWasWriting) {
  {
    RunKeeper first("mlp", run(), false, true);
    first.begin(kept_config, 0, kept_host);
  }
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  for (const char* name : {"config.json", "checkpoints/step-00000009.safetensors"})
    std::ofstream(run() / (std::string(name) + ".partial-" + std::to_string(child) + "-3")) << "half";
  std::ofstream(run() / "checkpoints/notes.txt") << "of the user";
  const RunKeeper second("mlp", run(), true, true);
  EXPECT_EQ(names_in(run() / "checkpoints"), (std::vector<std::string>{"notes.txt"}));
  EXPECT_EQ(names_in(run()),
            (std::vector<std::string>{"checkpoints", "config.json", "environment.json", "lock"}));
}

// --- how often a run saves

// The checkpoints that are there when an epoch begins and when it is looked at.
struct Watching : TrainObserver {
  explicit Watching(fs::path of) : run(std::move(of)) {}
  void epoch_begun(std::int64_t) override { look(); }
  void evaluation_begun(std::int64_t) override { look(); }
  void look() {
    const auto newest = read_newest_checkpoint(run / "checkpoints");
    steps.push_back(newest ? newest->step : 0);
  }
  fs::path run;
  std::vector<std::int64_t> steps;
};

TEST_F(Keeping, SavesWhenAnEpochEnds) {
  Watching watching(run());
  train(test::small_run(), {.out = run(), .checkpoint_seconds = 1e9, .observer = &watching});
  // Before each epoch of 8 steps and its evaluation, then before the evaluation of the end.
  EXPECT_EQ(watching.steps, (std::vector<std::int64_t>{0, 0, 8, 8, 16, 16, 24}));
  EXPECT_EQ(names_in(run() / "checkpoints"),
            (std::vector<std::string>{"step-00000016.safetensors", "step-00000024.safetensors"}));
}

TEST_F(Keeping, SavesInBetweenWhenItIsTime) {
  Watching watching(run());
  train(test::small_run(), {.out = run(), .checkpoint_seconds = 0, .observer = &watching});
  // No time is too short: every step, but for the last of an epoch, which waits for the evaluation.
  EXPECT_EQ(watching.steps, (std::vector<std::int64_t>{0, 7, 8, 15, 16, 23, 24}));
}

TEST_F(Keeping, SavesAtItsEndWithinAnEpoch) {
  TrainSettings settings = test::small_run();
  settings.steps = 11;
  train(settings, {.out = run(), .checkpoint_seconds = 1e9});
  EXPECT_EQ(names_in(run() / "checkpoints"),
            (std::vector<std::string>{"step-00000008.safetensors", "step-00000011.safetensors"}));
  EXPECT_EQ(test::newest_checkpoint(run()).notes.at("epoch_steps"), "3");
}

// The best one is of the epoch with the best quality, whichever that was.
TEST_F(Keeping, TheBestIsThatOfTheBestEpoch) {
  TrainSettings settings = test::small_run();
  settings.epochs = 6;
  settings.optimizer = "sgd";
  settings.learning_rate = 0.5;  // too much: quality goes up and down
  train(settings, {.out = run()});
  std::int64_t best_step = 0;
  double best = 1e300;
  for (const json& line : RunDirectory::open(run()).read_log())
    if (line.contains("epoch") && line.at("rmse") < best) {
      best = line.at("rmse");
      best_step = line.at("step");
    }
  EXPECT_EQ(read_checkpoint(run() / "best.safetensors").step, best_step);
}

}  // namespace
}  // namespace superstep::run
