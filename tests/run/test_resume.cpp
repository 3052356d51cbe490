// Runs that are killed, stopped by a signal, or meet a full disk, in a process of their own: whatever they
// leave behind, who goes on with it ends with the bits and the log of a run that nobody disturbed.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/run/train/train_observer.h"
#include "tests/contains.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace fs = std::filesystem;

// What happens to the process, at the `occurrence`-th time that the run comes to `place`.
struct Stop {
  std::string
      how;  // "kill", "term", "kill_in" and "term_in" so many us, "cut" and "full" at so many bytes of a file
  std::string place;
  int occurrence = 1;
  long amount = 0;
  double checkpoint_seconds = 30;
};

constexpr const char* child_variable = "SUPERSTEP_TEST_RUN";

// A file may not grow beyond this: who writes on is killed in the middle of it, or told that it cannot be
// done.
void limit_files(long bytes, bool killed) {
  std::signal(SIGXFSZ, killed ? SIG_DFL : SIG_IGN);
  const rlimit none{0, 0}, limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  ::setrlimit(RLIMIT_CORE, &none);
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

class StoppingProcess : public TrainObserver {
 public:
  explicit StoppingProcess(Stop stop) : stop_(std::move(stop)) {}
  void begun(const TrainBeginning&) override { come_to("begun"); }
  void epoch_begun(std::int64_t) override { come_to("epoch begun"); }
  void epoch_ended(std::int64_t, double) override { come_to("epoch ended"); }
  void evaluation_begun(std::int64_t) override { come_to("evaluation begun"); }
  void evaluation_ended(std::int64_t, const std::vector<Metric>&) override { come_to("evaluation ended"); }
  void finished() override { come_to("finished"); }

 private:
  void come_to(const char* place) {
    if (stop_.place != place || ++times_ != stop_.occurrence) return;
    if (stop_.how == "kill") ::raise(SIGKILL);
    if (stop_.how == "term") {
      ::raise(SIGTERM);
      return;
    }
    if (stop_.how == "cut" || stop_.how == "full") return limit_files(stop_.amount, stop_.how == "cut");
    std::thread([amount = stop_.amount, signal = stop_.how == "term_in" ? SIGTERM : SIGKILL] {
      std::this_thread::sleep_for(std::chrono::microseconds(amount));
      ::kill(::getpid(), signal);
    }).detach();
  }

  Stop stop_;
  int times_ = 0;
};

TrainSettings resumed_settings(const std::string& workload) {
  for (const TrainSettings& settings : {test::normalised_run(), test::dropping_run()})
    if (settings.workload == workload) return settings;
  return test::small_run();
}

// The child: "FOLDER;WORKLOAD;RESUME;HOW;PLACE;OCCURRENCE;AMOUNT;CHECKPOINT_SECONDS".
int train_as_told(const std::string& words) {
  const std::vector<std::string> told = split(words, ';');
  StoppingProcess stopping(
      {.how = told[3], .place = told[4], .occurrence = std::stoi(told[5]), .amount = std::stol(told[6])});
  watch_for_interrupts();
  try {
    train(resumed_settings(told[1]), {.out = told[0],
                                      .resume = told[2] == "1",
                                      .checkpoint_seconds = std::stod(told[7]),
                                      .observer = &stopping});
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.code() == ErrorCode::interrupted ? 130 : 1;
  }
}

// In the child trains instead of testing.
class InTheChild : public ::testing::Environment {
  void SetUp() override {
    if (const char* told = std::getenv(child_variable)) ::_exit(train_as_told(told));
  }
};
const auto* const in_the_child = ::testing::AddGlobalTestEnvironment(new InTheChild);

struct Ended {
  int signal = 0, code = 0;
  std::string errors;
};

class Resuming : public ::testing::Test {
 protected:
  // Trains in a process of its own, this same program.
  Ended train_elsewhere(const std::string& workload, const std::string& name, bool resume, const Stop& stop) {
    const std::string told =
        fmt::format("{};{};{};{};{};{};{};{}", (folder_ / name).string(), workload, resume ? 1 : 0, stop.how,
                    stop.place, stop.occurrence, stop.amount, stop.checkpoint_seconds);
    int output[2];  // a pipe, which no limit on files cuts short
    EXPECT_EQ(::pipe(output), 0);
    ::setenv(child_variable, told.c_str(), 1);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(output[1], STDOUT_FILENO);
      ::dup2(output[1], STDERR_FILENO);
      ::execl("/proc/self/exe", "test_run", "--gtest_filter=Resuming.*", nullptr);
      ::_exit(99);
    }
    ::unsetenv(child_variable);
    ::close(output[1]);
    std::string errors(1 << 16, '\0');
    std::size_t size = 0;
    for (ssize_t got = 1; got > 0 && size < errors.size();
         size += static_cast<std::size_t>(std::max<ssize_t>(got, 0)))
      got = ::read(output[0], errors.data() + size, errors.size() - size);
    errors.resize(size);
    ::close(output[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return {.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
            .code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
            .errors = errors};
  }

  // As the program does: with the settings that the folder keeps.
  void go_on(const std::string& name) {
    const TrainSettings kept = train_settings_from_json(RunDirectory::open(folder_ / name).config());
    train(kept, {.out = folder_ / name, .resume = true});
  }

  void train_whole(const std::string& workload) {
    train(resumed_settings(workload), {.out = folder_ / (workload + "-whole")});
  }

  // The last checkpoint that the stop has left.
  std::int64_t step_left(const std::string& name) const {
    const auto found = read_newest_checkpoint(folder_ / name / "checkpoints");
    return found ? found->step : 0;
  }

  std::size_t partial_files(const std::string& name) const {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / name))
      count += entry.path().filename().string().find(".partial-") != std::string::npos;
    return count;
  }

  // Stops a run, goes on with it, and compares it with the whole one; `step`: what the stop leaves.
  Ended stop_and_go_on(const std::string& workload, const Stop& stop, std::int64_t step) {
    const std::string name = fmt::format("{}-{}", workload, number_++);
    const Ended ended = train_elsewhere(workload, name, false, stop);
    EXPECT_EQ(step_left(name), step) << ended.errors;
    EXPECT_EQ(partial_files(name), stop.how == "cut" ? 1U : 0U) << "what was being written";
    go_on(name);
    EXPECT_EQ(partial_files(name), 0U);
    test::expect_same_run(folder_ / (workload + "-whole"), folder_ / name);
    return ended;
  }

  ScratchFolder folder_;
  int number_ = 0;
};

std::string told_of(const Stop& stop) {
  return fmt::format("{} at '{}' {}", stop.how, stop.place, stop.occurrence);
}

TEST_F(Resuming, KilledAtEveryPlace) {
  train_whole("mlp");
  const std::vector<std::pair<Stop, std::int64_t>> stops{{{"kill", "begun"}, 0},
                                                         {{"kill", "epoch begun", 1}, 0},
                                                         {{"kill", "epoch ended", 1}, 0},
                                                         {{"kill", "evaluation begun", 1}, 0},
                                                         {{"kill", "evaluation ended", 1}, 0},
                                                         {{"kill", "epoch begun", 2}, 8},
                                                         {{"kill", "evaluation begun", 2}, 8},
                                                         {{"kill", "evaluation ended", 3}, 16},
                                                         {{"kill", "evaluation begun", 4}, 24},  // of the end
                                                         {{"kill", "evaluation ended", 4}, 24},
                                                         {{"kill", "finished"}, 24}};
  for (const auto& [stop, step] : stops) {
    SCOPED_TRACE(told_of(stop));
    EXPECT_EQ(stop_and_go_on("mlp", stop, step).signal, SIGKILL);
  }
}

// All steps are done, and what is left is to look at all samples and to write the model.
TEST_F(Resuming, ToldToStopAfterTheLastStep) {
  train_whole("mlp");
  for (const Stop& stop : {Stop{"term", "evaluation begun", 3}, Stop{"term", "evaluation begun", 4}}) {
    SCOPED_TRACE(told_of(stop));
    EXPECT_EQ(stop_and_go_on("mlp", stop, 24).code, 130);
  }
}

// A file is left half written where the process is killed in the middle of it: of the best checkpoint, of one
// within an epoch, of the last one.
TEST_F(Resuming, KilledWhileACheckpointIsWritten) {
  train_whole("mlp");
  const std::vector<std::pair<Stop, std::int64_t>> stops{
      {{"cut", "evaluation ended", 1, 4096}, 0},
      {{"cut", "evaluation ended", 2, 4096, 0}, 15},  // with a checkpoint after every step
      {{"cut", "epoch begun", 2, 4096, 0}, 8},
      {{"cut", "finished", 1, 4096}, 24}};
  for (const auto& [stop, step] : stops) {
    SCOPED_TRACE(told_of(stop));
    EXPECT_EQ(stop_and_go_on("mlp", stop, step).signal, SIGXFSZ);
  }
}

// The same places, but the system says that nothing more can be written; a line of the log is left half.
TEST_F(Resuming, TheDiskIsFull) {
  train_whole("mlp");
  const std::vector<std::pair<Stop, std::int64_t>> stops{{{"full", "evaluation ended", 1, 60}, 0},
                                                         {{"full", "evaluation ended", 1, 4096}, 0},
                                                         {{"full", "evaluation ended", 2, 300, 0}, 15},
                                                         {{"full", "epoch begun", 2, 4096, 0}, 8},
                                                         {{"full", "finished", 1, 4096}, 24}};
  for (const auto& [stop, step] : stops) {
    SCOPED_TRACE(told_of(stop));
    const Ended ended = stop_and_go_on("mlp", stop, step);
    EXPECT_EQ(ended.code, 1);
    EXPECT_TRUE(contains(ended.errors, "cannot "));
  }
}

// Signals that come while something is computed, mostly within a step: several sittings, each stopped later.
// Where the machine is busy a signal may come when a run is over: then the next one is for a new run.
TEST_F(Resuming, SignalsAtAnyMoment) {
  constexpr int signals = 6, most = 60;
  for (const TrainSettings& settings : {test::small_run(), test::normalised_run(), test::dropping_run()}) {
    SCOPED_TRACE(settings.workload);
    train_whole(settings.workload);
    int stopped = 0, runs = 1;
    const auto name = [&] { return fmt::format("{}-cut-{}", settings.workload, runs); };
    for (int i = 0; i < signals || (stopped == 0 && i < most); ++i) {
      const Stop stop{.how = i % 2 == 0 ? "term_in" : "kill_in",
                      .place = "epoch begun",
                      .amount = 700 + 2300 * (i % signals),
                      .checkpoint_seconds = 0};
      const Ended ended =
          train_elsewhere(settings.workload, name(), fs::exists(folder_ / name() / "config.json"), stop);
      EXPECT_TRUE(ended.signal == SIGKILL || ended.code == 130 || ended.code == 0) << ended.errors;
      stopped += ended.signal == SIGKILL || ended.code == 130;
      runs += ended.signal == 0 && ended.code == 0;
    }
    EXPECT_GT(stopped, 0) << "every run was over before its signal came";
    if (fs::exists(folder_ / name() / "config.json")) go_on(name());
    for (; runs > 0; --runs)
      if (fs::exists(folder_ / name()))
        test::expect_same_run(folder_ / (settings.workload + "-whole"), folder_ / name());
  }
}

// Running means that no optimiser moves and masks that follow from the step are part of what a checkpoint is.
TEST_F(Resuming, NormalisedAndDroppingModels) {
  for (const TrainSettings& settings : {test::normalised_run(), test::dropping_run()}) {
    SCOPED_TRACE(settings.workload);
    train_whole(settings.workload);
    const auto epochs = static_cast<std::int64_t>(settings.epochs);
    const std::int64_t epoch = step_left(settings.workload + "-whole") / epochs;  // in steps
    stop_and_go_on(settings.workload, {"kill", "epoch begun", 2}, epoch);
    stop_and_go_on(settings.workload, {"kill", "evaluation ended", 2}, epoch);
    stop_and_go_on(settings.workload, {"cut", "epoch begun", 2, 4096, 0}, epoch);
    stop_and_go_on(settings.workload, {"kill", "finished"}, epoch * epochs);
  }
}

// The newest one damaged: the one before it serves. All of them: the run is not begun anew unasked.
TEST_F(Resuming, CheckpointsThatAreDamagedAfterwards) {
  train_whole("mlp");
  train_elsewhere("mlp", "run", false, {"kill", "epoch begun", 3});
  const auto cut_short = [&](const char* name) {
    const fs::path file = folder_ / "run/checkpoints" / name;
    fs::resize_file(file, fs::file_size(file) / 2);
  };
  cut_short("step-00000016.safetensors");
  EXPECT_EQ(step_left("run"), 8) << "the one before it serves";
  fs::copy(folder_ / "run", folder_ / "both", fs::copy_options::recursive);
  go_on("run");
  test::expect_same_run(folder_ / "mlp-whole", folder_ / "run");
  fs::resize_file(folder_ / "both/checkpoints/step-00000008.safetensors", 100);
  EXPECT_THROW(go_on("both"), Error);
  fs::remove_all(folder_ / "both/checkpoints");
  go_on("both");  // a folder without any is that of a run that was killed before its first
  test::expect_same_run(folder_ / "mlp-whole", folder_ / "both");
}

}  // namespace
}  // namespace superstep::run
