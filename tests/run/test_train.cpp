// The training loop: a run that is stopped, wherever it is stopped, ends with the same bits and the same log.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/run_directory.h"
#include "superstep/run/train/run_lock.h"
#include "superstep/run/train/train.h"
#include "superstep/run/train/train_observer.h"
#include "superstep/run/train/train_resume.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace fs = std::filesystem;

// 8 batches an epoch, validation samples, two threads.
TrainSettings small_run() {
  return {.workload = "mlp", .samples = 640, .batch = 64, .replicas = 2, .epochs = 3, .seed = 5};
}

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

  Checkpoint newest(const std::string& name) const {
    return *read_newest_checkpoint(folder_ / name / "checkpoints");
  }

  // What a log says that does not depend on the clock.
  std::vector<std::string> log(const std::string& name) const {
    std::vector<std::string> lines;
    for (nlohmann::json line : RunDirectory::open(folder_ / name).read_log()) {
      for (const char* timed : {"seconds", "throughput", "throughput_with_data", "step_time", "flops_rate",
                                "data_wait", "time_to_solution", "compile_time"})
        line.erase(timed);
      lines.push_back(line.dump());
    }
    return lines;
  }

  void expect_same(const std::string& a, const std::string& b) const {
    const Checkpoint first = newest(a), second = newest(b);
    EXPECT_EQ(first.step, second.step);
    ASSERT_EQ(first.states.size(), second.states.size());
    for (const auto& [name, tensor] : first.states)
      EXPECT_EQ(std::memcmp(tensor.bytes(), second.states.at(name).bytes(), tensor.byte_count()), 0) << name;
    EXPECT_EQ(first.notes.at("best"), second.notes.at("best"));
    EXPECT_EQ(log(a), log(b));
    const Checkpoint best = read_checkpoint(folder_ / a / "best.safetensors"),
                     other = read_checkpoint(folder_ / b / "best.safetensors");
    EXPECT_EQ(best.step, other.step);
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

// Mostly within a step, with batch normalisation and with dropout; every sitting does at least a step.
TEST_F(TrainLoop, StoppedAtAnyMomentItEndsWithTheSameBits) {
  TrainSettings normalised{.workload = "unet-64",
                           .model_options = {"size=32", "width=4", "levels=2"},
                           .samples = 80,
                           .batch = 16,
                           .micro_batch = 4,
                           .replicas = 2,
                           .epochs = 4};
  TrainSettings dropping{.workload = "uno",
                         .model_options = {"width=64"},
                         .samples = 200,
                         .batch = 32,
                         .replicas = 2,
                         .epochs = 3};
  for (const TrainSettings& settings : {normalised, dropping}) {
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
  const Checkpoint a = newest("whole"), b = newest("further");
  for (const auto& [name, tensor] : a.states)
    EXPECT_EQ(std::memcmp(tensor.bytes(), b.states.at(name).bytes(), tensor.byte_count()), 0) << name;
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

TEST_F(TrainLoop, AFolderHasOneWriter) {
  fs::create_directories(folder_ / "run");
  int ready[2], go[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder_ / "run");
    char byte = 0;
    (void)!::write(ready[1], "r", 1);
    (void)!::read(go[0], &byte, 1);
    ::_exit(0);  // as a killed process: nothing is tidied up
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  try {
    train(small_run(), {.out = folder_ / "run"});
    ADD_FAILURE() << "a second writer";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "is being written to by process " + std::to_string(child) + " on "));
  }
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(sit(small_run(), "run", false)) << "the lock of a dead process holds nobody up";
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
