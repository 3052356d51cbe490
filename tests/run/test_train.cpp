// The training loop: a run that is stopped, wherever it is stopped, ends with the same bits and the same log.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/run/model.h"
#include "superstep/run/train/train_observer.h"
#include "superstep/run/train/train_resume.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace fs = std::filesystem;
using test::small_run;

// Asks to stop at one of the places that a run tells of.
struct Stopper : TrainObserver {
  std::function<void(const char* place, std::int64_t epoch)> at;
  void begun(const TrainBeginning&) override { at("begun", 0); }
  void epoch_begun(std::int64_t epoch) override { at("epoch begun", epoch); }
  void epoch_ended(std::int64_t epoch, double) override { at("epoch ended", epoch); }
  void evaluation_begun(std::int64_t epoch) override { at("evaluation begun", epoch); }
  void evaluation_ended(std::int64_t epoch, const std::vector<Metric>&) override {
    at("evaluation ended", epoch);
  }
};

class TrainLoop : public ::testing::Test {
 protected:
  ~TrainLoop() override { clear_interrupt(); }

  // Trains until it ends or is stopped; true when it ended.
  bool sit(const TrainSettings& settings, const std::string& name, bool resume,
           TrainObserver* observer = nullptr, double checkpoint_seconds = 30) {
    clear_interrupt();
    try {
      train(settings, {.out = folder_ / name,
                       .resume = resume,
                       .checkpoint_seconds = checkpoint_seconds,
                       .observer = observer});
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::interrupted) << error.what();
      return false;
    }
  }

  Checkpoint newest(const std::string& name) const { return test::newest_checkpoint(folder_ / name); }
  void expect_same(const std::string& a, const std::string& b) const {
    test::expect_same_run(folder_ / a, folder_ / b);
  }

  ScratchFolder folder_;
};

TEST_F(TrainLoop, StoppedAnywhereItEndsWithTheSameBitsAndLog) {
  ASSERT_TRUE(sit(small_run(), "whole", false));
  ASSERT_EQ(newest("whole").step, 24);
  struct Place {
    const char* name;
    std::int64_t epoch, step;  // and the step that is saved
  };
  int number = 0;
  for (const Place& place : {Place{"begun", 0, 0}, Place{"epoch begun", 1, 0}, Place{"epoch begun", 2, 8},
                             Place{"epoch ended", 1, 8}, Place{"evaluation begun", 1, 8},
                             Place{"evaluation ended", 1, 8}, Place{"evaluation begun", 2, 16},
                             Place{"evaluation begun", 3, 24}, Place{"evaluation ended", 3, 24}}) {
    SCOPED_TRACE(testing::Message() << place.name << ' ' << place.epoch);
    const std::string name = "cut" + std::to_string(number++);
    Stopper stopper;
    stopper.at = [&](const char* where, std::int64_t epoch) {
      if (std::string(where) == place.name && epoch == place.epoch) request_interrupt();
    };
    EXPECT_FALSE(sit(small_run(), name, false, &stopper));
    EXPECT_EQ(newest(name).step, place.step);
    ASSERT_TRUE(sit(small_run(), name, true));
    expect_same("whole", name);
  }
}

// Mostly within a step, with batch normalisation, with dropout and with estimated gradients; every sitting
// does at least a step.
TEST_F(TrainLoop, StoppedAtAnyMomentItEndsWithTheSameBits) {
  for (const TrainSettings& settings :
       {test::normalised_run(), test::dropping_run(), test::estimated_run()}) {
    SCOPED_TRACE(settings.workload);
    const std::string whole = settings.workload + "-whole", cut = settings.workload + "-cut";
    ASSERT_TRUE(sit(settings, whole, false));
    int sittings = 0;
    bool resume = false;
    for (bool ended = false; !ended && sittings < 200; ++sittings, resume = true) {
      Stopper stopper;
      std::jthread later;
      const auto delay = std::chrono::microseconds(500 + 1700 * (sittings % 9));
      stopper.at = [&](const char* where, std::int64_t) {
        if (std::string(where) != "epoch begun" || later.joinable()) return;
        later = std::jthread([delay] {
          std::this_thread::sleep_for(delay);
          request_interrupt();
        });
      };
      // After so many stops it may go on.
      ended = sit(settings, cut, resume, sittings < 12 ? &stopper : nullptr);
    }
    EXPECT_GT(sittings, 2);
    expect_same(whole, cut);
  }
}

// Stopped in its evaluation, then killed after that was made up for and before the next step was saved.
TEST_F(TrainLoop, TheEndOfAnEpochThatIsMadeTwiceIsLoggedOnce) {
  ASSERT_TRUE(sit(small_run(), "whole", false));
  Stopper stopper;
  stopper.at = [](const char* where, std::int64_t epoch) {
    if (std::string(where) == "evaluation begun" && epoch == 1) request_interrupt();
  };
  EXPECT_FALSE(sit(small_run(), "cut", false, &stopper));
  stopper.at = [](const char* where, std::int64_t epoch) {
    if (std::string(where) == "epoch begun" && epoch == 2) throw Error(ErrorCode::internal, "killed");
  };
  clear_interrupt();
  EXPECT_THROW(train(small_run(), {.out = folder_ / "cut", .resume = true, .observer = &stopper}), Error);
  ASSERT_TRUE(sit(small_run(), "cut", true));
  expect_same("whole", "cut");
}

// The rate that a metric steers goes on where it stood, in whatever epoch the run is stopped.
TEST_F(TrainLoop, StoppedOnAPlateauItEndsWithTheSameBits) {
  const TrainSettings settings = test::plateau_run();
  ASSERT_TRUE(sit(settings, "whole", false));
  const auto log = RunDirectory::open(folder_ / "whole").read_log();
  std::vector<double> rates;
  for (const nlohmann::json& line : log)
    if (line.contains("learning_rate")) rates.push_back(line.at("learning_rate"));
  ASSERT_FALSE(rates.empty());
  EXPECT_EQ(rates.front(), 0.3);
  EXPECT_LE(rates.back(), 0.15) << "twenty epochs without a gain";
  int number = 0;
  for (const std::int64_t epoch : {1, 7, 21, 22, 30}) {
    SCOPED_TRACE(epoch);
    const std::string name = "cut" + std::to_string(number++);
    for (const char* place : {"evaluation begun", "epoch begun"}) {
      Stopper stopper;
      stopper.at = [&](const char* where, std::int64_t now) {
        if (std::string(where) == place && now == epoch + (where[1] == 'p' ? 1 : 0)) request_interrupt();
      };
      EXPECT_FALSE(sit(settings, name, place[1] == 'p', &stopper));
    }
    ASSERT_TRUE(sit(settings, name, true));
    expect_same("whole", name);
  }
}

// The published wall model stops where fifty epochs brought no gain; a high rate brings none for long.
TEST_F(TrainLoop, EndsWhereNothingIsGained) {
  TrainSettings settings = test::plateau_run();
  settings.epochs = 500;
  const TrainReport report = train(settings, {});
  EXPECT_LT(report.epochs, 500);
  EXPECT_GE(report.epochs, 51);
  EXPECT_EQ(report.gave_up, 50);
  EXPECT_EQ(train(test::small_run(), {}).gave_up, 0);
  EXPECT_TRUE(report.recipe.starts_with("published: adam at 0.3;")) << report.recipe << ": as it was run";
  // What is given overrides the recipe, and the recipe the quick one.
  const Model model(settings);
  EXPECT_EQ(model.settings().learning_rate, 0.3);
  EXPECT_EQ(model.settings().batch, 64);
  EXPECT_EQ(model.settings().model_options, (std::vector<std::string>{"dropout=0.1"}));
  const Model other({.workload = "mlp", .recipe = "published", .model_options = {"dropout=0"}});
  EXPECT_EQ(other.settings().model_options, (std::vector<std::string>{"dropout=0"}));
  EXPECT_EQ(other.settings().learning_rate, 2e-4);
  EXPECT_EQ(Model({.workload = "mlp"}).settings().recipe, "quick");
}

TEST_F(TrainLoop, AScheduleAndAPatienceMayBeGiven) {
  TrainSettings settings = small_run();
  settings.epochs = 40;
  settings.learning_rate = 1e-30;  // nothing moves
  settings.schedule = "cosine:warm_up=1";
  settings.patience = 3;
  settings.average = 0.9;
  const TrainReport report = train(settings, {.out = folder_ / "patient"});
  EXPECT_EQ(report.epochs, 4) << "the first sets the mark, three bring no gain";
  EXPECT_EQ(report.gave_up, 3);
  for (const char* said : {"cosine", "fewer after 3 without a gain", "averaged by 0.9"})
    EXPECT_TRUE(contains(report.recipe, said)) << report.recipe;
  const Model model(settings);
  EXPECT_EQ(model.schedule().shape.warm_up_epochs, 1);
  EXPECT_EQ(model.schedule().peak, 1e-30);
}

TEST_F(TrainLoop, WhatIsWatchedMustBeThere) {
  TrainSettings settings = small_run();
  settings.patience = 3;
  settings.monitor = "rmze";
  expect_error(ErrorCode::invalid_argument, {"--monitor rmze", "no such metric", "rmse"},
               [&] { Model{settings}; });
  settings.monitor = "rmse";
  EXPECT_EQ(Model(settings).schedule().shape.monitor, "rmse");
  settings.patience = 0;
  expect_error(ErrorCode::invalid_argument, {"--monitor rmse", "nothing watches it", "--patience"},
               [&] { Model{settings}; });
  settings.monitor.clear();
  for (const double decay : {1.0, -0.1, std::nan("")}) {
    TrainSettings averaged = small_run();
    averaged.average = decay;
    expect_error(ErrorCode::invalid_argument, {"--ema", "below 1"}, [&] { Model{averaged}; });
  }
  TrainSettings hasty = small_run();
  hasty.patience = -1;
  expect_error(ErrorCode::invalid_argument, {"--patience -1"}, [&] { Model{hasty}; });
  settings.schedule = "stairs";
  expect_error(ErrorCode::invalid_argument, {"--schedule stairs", "period"}, [&] { Model{settings}; });
}

TEST_F(TrainLoop, RecipesThatThereAreNotAreRefused) {
  expect_error(ErrorCode::invalid_argument, {"publish", "there is no such recipe", "published"},
               [] { Model({.workload = "mlp", .recipe = "publish"}); });
  expect_error(ErrorCode::invalid_argument, {"no recipe of 'lstm' was published"},
               [] { Model({.workload = "lstm", .recipe = "published"}); });
}

// --- what a run is made of

// What a run tells of while it goes on, in order.
struct Listening : TrainObserver {
  std::vector<std::string> told;
  TrainBeginning beginning;
  void tell(const char* what, std::int64_t epoch) { told.push_back(what + (" " + std::to_string(epoch))); }
  void data_touched(const TrainSettings& settings, const Schedule& schedule) override {
    EXPECT_GT(settings.learning_rate, 0) << "defaults are filled in";
    EXPECT_EQ(schedule.peak, settings.learning_rate);
    told.push_back("data");
  }
  void begun(const TrainBeginning& with) override {
    beginning = with;
    told.push_back("begun");
  }
  void epoch_begun(std::int64_t epoch) override { tell("epoch", epoch); }
  void epoch_ended(std::int64_t epoch, double throughput) override {
    EXPECT_GT(throughput, 0);
    tell("end", epoch);
  }
  void evaluation_begun(std::int64_t epoch) override { tell("look", epoch); }
  void evaluation_ended(std::int64_t epoch, const std::vector<Metric>& found) override {
    EXPECT_EQ(found.at(0).name, "rmse");
    tell("seen", epoch);
  }
  void finished() override { told.push_back("finished"); }
};

TEST_F(TrainLoop, TellsOfEpochsAndEvaluationsInOrder) {
  TrainSettings settings = small_run();
  settings.steps = 11;  // an epoch and three steps
  Listening listening;
  const TrainReport report = train(settings, {.observer = &listening});
  EXPECT_EQ(listening.told, (std::vector<std::string>{"data", "begun", "epoch 1", "end 1", "look 1", "seen 1",
                                                      "epoch 2", "end 2", "look 2", "seen 2", "finished"}));
  EXPECT_EQ(listening.beginning.training_samples, 512);
  EXPECT_EQ(listening.beginning.validation_samples, 128);
  EXPECT_EQ(listening.beginning.scheduled_steps, 24) << "of the schedule, wherever the run stops";
  EXPECT_EQ(report.steps, 11);
  EXPECT_DOUBLE_EQ(report.epochs, 11.0 / 8);
  EXPECT_TRUE(report.goal.empty());
  EXPECT_FALSE(report.reached);
}

TEST_F(TrainLoop, AStoppedRunHasNotFinished) {
  struct Both : Listening {
    void epoch_begun(std::int64_t epoch) override {
      Listening::epoch_begun(epoch);
      if (epoch == 2) request_interrupt();
    }
  } both;
  EXPECT_FALSE(sit(small_run(), "run", false, &both));
  EXPECT_EQ(std::ranges::count(both.told, "finished"), 0);
  EXPECT_FALSE(fs::exists(folder_ / "run/model.onnx"));
}

double reported(const TrainReport& report, std::string_view metric) {
  return std::ranges::find(report.metrics, metric, &Metric::name)->value;
}

TEST_F(TrainLoop, KeepsWhatItsFolderSaysItKeeps) {
  const TrainReport report = train(small_run(), {.out = folder_ / "run"});
  for (const char* name :
       {"config.json", "environment.json", "metrics.jsonl", "best.safetensors", "model.onnx",
        "checkpoints/step-00000016.safetensors", "checkpoints/step-00000024.safetensors"})
    EXPECT_TRUE(fs::exists(folder_ / "run" / name)) << name;
  const auto log = RunDirectory::open(folder_ / "run").read_log();
  ASSERT_EQ(log.size(), 4U);  // three epochs and the end
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(log[i].at("epoch"), i + 1);
    EXPECT_EQ(log[i].at("step"), 8 * (i + 1));
    best = std::min(best, log[i].at("rmse").get<double>());
  }
  EXPECT_EQ(log[3].at("event"), "finished");
  EXPECT_EQ(log[3].at("loss"), log[2].at("loss")) << "the mean over the last whole epoch";
  EXPECT_EQ(reported(report, "loss"), log[2].at("loss").get<double>());
  EXPECT_EQ(reported(report, "rmse"), log[3].at("rmse").get<double>());
  EXPECT_EQ(newest("run").notes.at("best"), fmt::format("{}", best));
  EXPECT_LT(log[2].at("loss").get<double>(), log[0].at("loss").get<double>()) << "it learns";
}

TEST_F(TrainLoop, TheFolderChangesNothing) {
  const TrainReport with = train(small_run(), {.out = folder_ / "run", .checkpoint_seconds = 0}),
                    without = train(small_run(), {});
  for (const char* name : {"loss", "rmse"}) EXPECT_EQ(reported(with, name), reported(without, name)) << name;
}

TEST_F(TrainLoop, ASeedIsARun) {
  TrainSettings other = small_run();
  ASSERT_TRUE(sit(other, "one", false));
  ASSERT_TRUE(sit(other, "two", false));
  test::expect_same_run(folder_ / "one", folder_ / "two");
  other.seed = 6;
  ASSERT_TRUE(sit(other, "other", false));
  EXPECT_NE(newest("one").notes.at("loss"), newest("other").notes.at("loss"));
}

TEST_F(TrainLoop, EndsWithinAnEpochOrBeforeTheFirst) {
  TrainSettings settings = small_run();
  settings.epochs = 0.5;
  EXPECT_EQ(train(settings, {}).steps, 4);
  settings.epochs = 0.01;
  EXPECT_EQ(train(settings, {}).steps, 1) << "a step at least";
  settings.epochs = 1;
  settings.steps = 9;
  EXPECT_EQ(train(settings, {}).steps, 9) << "steps go on where the schedule has ended";
}

// The loss of a run that ends within an epoch is the mean over the last whole one, whoever trained that
// epoch.
TEST_F(TrainLoop, TheLossIsTheSameAfterASittingWithoutAWholeEpoch) {
  TrainSettings settings = small_run();
  settings.steps = 11;
  ASSERT_TRUE(sit(settings, "whole", false));
  Stopper stopper;
  stopper.at = [](const char* where, std::int64_t epoch) {
    if (std::string(where) == "epoch begun" && epoch == 2) request_interrupt();
  };
  EXPECT_FALSE(sit(settings, "cut", false, &stopper));
  ASSERT_TRUE(sit(settings, "cut", true));
  expect_same("whole", "cut");
}

TEST_F(TrainLoop, ADivergedRunSaysWhereAndKeepsWhatWasBefore) {
  TrainSettings settings = small_run();
  settings.optimizer = "sgd";
  settings.learning_rate = 1e12;
  const auto step_told = [&](bool resume) {
    try {
      train(settings, {.out = folder_ / "run", .resume = resume, .checkpoint_seconds = 0});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::diverged) << error.what();
      EXPECT_TRUE(
          contains(error.what(), "try a smaller --learning-rate; the last checkpoint is from before"));
      const auto last = RunDirectory::open(folder_ / "run").read_log().back();
      EXPECT_EQ(last.at("event"), "diverged");
      return last.at("step").get<std::int64_t>();
    }
    ADD_FAILURE() << "it did not diverge";
    return std::int64_t{0};
  };
  const std::int64_t step = step_told(false);
  ASSERT_GT(step, 1) << "there is a checkpoint before";
  EXPECT_EQ(newest("run").step, step - 1);
  EXPECT_EQ(step_told(true), step) << "the same bits diverge at the same step";
}

// A target is reached on all validation samples or not at all, and within no epoch.
TEST_F(TrainLoop, AGoalEndsTheRunAtTheEpochThatReachesIt) {
  ASSERT_TRUE(sit(small_run(), "whole", false));
  const auto log = RunDirectory::open(folder_ / "whole").read_log();
  const double second = log[1].at("rmse");
  ASSERT_LT(second, log[0].at("rmse").get<double>()) << "the epochs get better: a goal between them";
  TrainSettings settings = small_run();
  settings.until = Until{"rmse", second};
  const TrainReport report = train(settings, {.out = folder_ / "goal"});
  EXPECT_TRUE(report.reached);
  EXPECT_EQ(report.steps, 16);
  EXPECT_TRUE(newest("goal").notes.contains("reached"));
  EXPECT_GT(reported(report, "time_to_solution"), 0);
}

TEST_F(TrainLoop, AGoalIsReachedInItsOwnDirection) {
  TrainSettings settings = small_run();
  settings.until = Until{"rmse", 1e-9};
  TrainReport report = train(settings, {});
  EXPECT_FALSE(report.reached);
  EXPECT_EQ(report.goal, "rmse <= 1e-09");
  settings.until = Until{"rmse", 1e9};
  report = train(settings, {});
  EXPECT_TRUE(report.reached);
  EXPECT_EQ(report.steps, 8);  // looked at when the first epoch ends
}

// Reached on the first samples, a goal is looked at on all of them: who is stopped there looks twice again.
TEST_F(TrainLoop, StoppedInTheSecondLookAtAGoalItEndsTheSame) {
  TrainSettings settings = small_run();
  settings.until = Until{"rmse", 1e9};
  ASSERT_TRUE(sit(settings, "whole", false));
  Stopper stopper;
  int looks = 0;
  stopper.at = [&](const char* where, std::int64_t) {
    if (std::string(where) == "evaluation begun" && ++looks == 2) request_interrupt();
  };
  EXPECT_FALSE(sit(settings, "cut", false, &stopper));
  EXPECT_EQ(newest("cut").step, 8);
  EXPECT_FALSE(newest("cut").notes.contains("reached"));
  ASSERT_TRUE(sit(settings, "cut", true));
  expect_same("whole", "cut");
  EXPECT_TRUE(newest("cut").notes.contains("reached"));
}

TEST_F(TrainLoop, AGoalThatIsNoMetricIsRefusedBeforeTheWork) {
  TrainSettings settings = small_run();
  settings.until = Until{"rms", 0.1};
  try {
    train(settings, {.out = folder_ / "run"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_TRUE(contains(error.what(), "did you mean 'rmse'? its metrics are rmse"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(TrainLoop, ARunGoesOnFurtherThanWasPlanned) {
  TrainSettings settings = small_run();
  settings.steps = 5;  // within an epoch
  ASSERT_TRUE(sit(settings, "further", false));
  EXPECT_EQ(newest("further").step, 5);
  const auto kept = [&] {
    return train_settings_from_json(RunDirectory::open(folder_ / "further").config());
  };
  ASSERT_TRUE(
      sit(extended(kept(), {.epochs = {}, .steps = 11, .until = {}, .replicas = {}}), "further", true));
  EXPECT_EQ(newest("further").step, 11);
  EXPECT_EQ(kept().steps, 11) << "the next sitting knows of it";
  ASSERT_TRUE(
      sit(extended(kept(), {.epochs = 3, .steps = {}, .until = {}, .replicas = {}}), "further", true));
  ASSERT_TRUE(sit(small_run(), "whole", false));
  EXPECT_EQ(newest("further").step, 24);
  test::expect_same_states(newest("whole"), newest("further"));
  // It cannot end before where it is.
  EXPECT_THROW(train(extended(kept(), {.epochs = {}, .steps = 7, .until = {}, .replicas = {}}),
                     {.out = folder_ / "further", .resume = true}),
               Error);
}

TEST_F(TrainLoop, AnotherGoalIsSought) {
  TrainSettings settings = small_run();
  settings.until = Until{"rmse", 1e9};
  ASSERT_TRUE(sit(settings, "run", false));
  EXPECT_EQ(newest("run").step, 8);
  ASSERT_TRUE(sit(settings, "run", true));
  EXPECT_EQ(newest("run").step, 8) << "the same goal is reached";
  settings.until = Until{"rmse", 1e-9};
  ASSERT_TRUE(sit(settings, "run", true));
  EXPECT_EQ(newest("run").step, 24);
}

TEST_F(TrainLoop, WhatARunIsCannotChange) {
  const TrainSettings kept = small_run();
  const auto refused = [&](const char* option, const TrainSettings& asked) -> std::string {
    try {
      refuse_changes(kept, asked, std::vector<std::string>{option}, "run");
    } catch (const Error& error) {
      EXPECT_EQ(error.where(), option);
      return error.message();
    }
    return "";
  };
  TrainSettings asked = kept;
  EXPECT_EQ(refused("--batch", asked), "") << "the same may be said again";
  asked.batch = 128;
  EXPECT_EQ(refused("--batch", asked), "the run in run was begun with 64, not 128: that cannot change");
  EXPECT_EQ(refused("--seed", asked), "") << "only what was given counts";
  asked = kept;
  asked.precision = "bf16";
  EXPECT_EQ(refused("--precision", asked),
            "the run in run was begun with 'f32', not 'bf16': that cannot change");
  asked = kept;
  asked.augment = false;
  EXPECT_NE(refused("--no-augment", asked), "");
}

// What a run begins with is what another one serves; its moments, and its own steps, begin anew.
TEST_F(TrainLoop, BeginsWithWhatAnotherRunHasLearnt) {
  for (TrainSettings settings : {small_run(), test::normalised_run()}) {
    const std::string name = settings.workload;
    ASSERT_TRUE(sit(settings, name, false));
    const Checkpoint learnt = read_checkpoint(folder_ / name / "best.safetensors");
    settings.weights = folder_ / name;
    settings.learning_rate = 1e-12;
    settings.steps = 1;
    ASSERT_TRUE(sit(settings, name + " again", false));
    const Checkpoint begun = newest(name + " again");
    const graph::Graph graph = Model(settings).inference()(1);
    const auto apart = [&](const Checkpoint& other) {
      double most = 0;
      for (const graph::ValueId state : graph.states()) {
        const std::string& which = graph.value(state).name;
        if (contains(which, "running") || contains(which, "mean") || contains(which, "var")) continue;
        for (std::int64_t i = 0; i < learnt.states.at(which).element_count(); ++i)
          most = std::max(most, std::abs(other.states.at(which).at(i) - learnt.states.at(which).at(i)));
      }
      return most;
    };
    EXPECT_LT(apart(begun), 1e-9) << name;
    EXPECT_EQ(begun.step, 1);
    TrainSettings drawn = settings;
    drawn.weights.clear();
    ASSERT_TRUE(sit(drawn, name + " drawn", false));
    EXPECT_GT(apart(newest(name + " drawn")), 1e-3) << name;  // the control
  }
}

TEST_F(TrainLoop, BeginsWithNoOtherModel) {
  ASSERT_TRUE(sit(test::normalised_run(), "narrow", false));
  TrainSettings other = small_run();
  other.weights = folder_ / "narrow";
  expect_error(ErrorCode::invalid_argument, {"is a run of 'unet-64', not of 'mlp'"},
               [&] { train(other, {.out = folder_ / "a"}); });
  TrainSettings wide = test::normalised_run();
  wide.model_options = {"size=32", "width=8", "levels=2"};
  wide.weights = folder_ / "narrow";
  expect_error(ErrorCode::bad_file, {"which the model asked for has as", "--set options of that run"},
               [&] { train(wide, {.out = folder_ / "b"}); });
  wide.weights = folder_ / "nowhere";
  EXPECT_THROW(train(wide, {.out = folder_ / "c"}), Error);
}

TEST_F(TrainLoop, WhatAKilledRunWasWritingIsTidiedAway) {
  TrainSettings settings = small_run();
  settings.steps = 5;
  ASSERT_TRUE(sit(settings, "run", false));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  const fs::path left =
      folder_ / "run/checkpoints" / ("step-00000009.safetensors.partial-" + std::to_string(child) + "-3");
  std::ofstream(left) << "half";
  std::ofstream(folder_ / "run/checkpoints/notes.txt") << "of the user";
  ASSERT_TRUE(sit(settings, "run", true));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/notes.txt"));
}

TEST_F(TrainLoop, AFolderThatCannotBeHasNoHalfRunInIt) {
  TrainSettings settings = small_run();
  settings.batch = 10'000;  // more than there are
  EXPECT_THROW(train(settings, {.out = folder_ / "run"}), Error);
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  EXPECT_THROW(train(small_run(), {.out = "/proc/self/run"}), Error);
}

}  // namespace
}  // namespace superstep::run
