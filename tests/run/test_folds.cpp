// Cross validation: folds are disjoint and hold all samples, each is a training of its own, and who is
// stopped goes on to the same numbers.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/thread_pool.h"
#include "superstep/run/model.h"
#include "superstep/run/train/fold_task.h"
#include "superstep/run/train/folds.h"
#include "tests/contains.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace fs = std::filesystem;

TrainSettings folded_run() {
  TrainSettings settings = test::small_run();
  settings.folds = 4;
  settings.epochs = 1;
  return settings;
}

std::unique_ptr<Task> open_fold(const TrainSettings& settings, int folds, int fold, ThreadPool& pool) {
  return Model(settings).open_task({.samples = settings.samples,
                                    .seed = settings.seed,
                                    .model_options = settings.model_options,
                                    .pool = &pool,
                                    .folds = folds,
                                    .fold = fold});
}

// The bytes of a sample's inputs, by which it is known again. Of mlp.
std::string sample_of(const Task& task, std::int64_t index, ThreadPool& pool) {
  const graph::Graph graph = Model(test::small_run()).inference()(1);
  std::vector<Tensor> inputs;
  for (const graph::ValueId id : graph.inputs())
    inputs.emplace_back(graph.type(id).element, graph.type(id).shape);
  task.fill_inputs({&index, 1}, inputs, pool);
  return {reinterpret_cast<const char*>(inputs[0].bytes()), inputs[0].byte_count()};
}

TEST(Folds, AreDisjointAndHoldEverySample) {
  ThreadPool pool(1);
  std::multiset<std::string> validated;
  std::set<std::string> all;
  for (int fold = 1; fold <= 3; ++fold) {
    const auto task = open_fold(test::small_run(), 3, fold, pool);
    ASSERT_EQ(task->size(), 640);
    std::set<std::string> trained;
    for (std::int64_t i = 0; i < task->size(); ++i) {
      const std::string sample = sample_of(*task, i, pool);
      all.insert(sample);
      if (i < task->training_count())
        trained.insert(sample);
      else
        validated.insert(sample);
    }
    for (std::int64_t i = task->training_count(); i < task->size(); ++i)
      EXPECT_FALSE(trained.contains(sample_of(*task, i, pool))) << "sample " << i << " of fold " << fold;
    EXPECT_NEAR(static_cast<double>(task->size() - task->training_count()), 640.0 / 3, 1);
  }
  EXPECT_EQ(validated.size(), 640U);
  EXPECT_EQ(std::set<std::string>(validated.begin(), validated.end()), all);
}

// Frames of one trajectory, reactions of one pair and polymers of one formula are on one side.
TEST(Folds, OfGroupsAreTheTasksOwn) {
  ThreadPool pool(1);
  for (const char* const workload : {"polymer-gcn", "yieldgnn", "gin", "schnet", "deepmd"}) {
    TrainSettings settings{.workload = workload, .samples = 30};
    std::int64_t validated = 0, size = 0;
    for (int fold = 1; fold <= 2; ++fold) {
      const auto task = open_fold(settings, 2, fold, pool);
      EXPECT_TRUE(task->heeds_folds()) << workload;
      validated += task->size() - task->training_count();
      size = task->size();
      EXPECT_GT(task->training_count(), 0) << workload;
    }
    // Packs may be more than the samples' share.
    EXPECT_NEAR(static_cast<double>(validated), static_cast<double>(size), 3) << workload;
  }
}

TEST(Folds, SayTheMeanAndItsError) {
  std::vector<FoldResult> folds;
  for (const double value : {1.0, 2.0, 3.0, 6.0})
    folds.push_back({.fold = static_cast<int>(folds.size()) + 1,
                     .metrics = {{.name = "r2", .value = value, .unit = "", .samples = {}}}});
  const auto summary = summary_of(folds);
  ASSERT_EQ(summary.size(), 1U);
  EXPECT_DOUBLE_EQ(summary[0].mean, 3);
  EXPECT_NEAR(summary[0].standard_error, std::sqrt(14.0 / 3 / 4), 1e-12);
}

std::vector<double> values_of(const std::vector<FoldResult>& folds) {
  std::vector<double> values;
  for (const FoldResult& fold : folds)
    for (const Metric& metric : fold.metrics) values.push_back(metric.value);
  return values;
}

TEST(Folds, GoOnWhereTheyWereKilled) {
  const ScratchFolder scratch;
  const auto nothing = [](const FoldResult&) {};
  const auto whole = train_folds(folded_run(), {.out = scratch / "whole"}, nothing);
  ASSERT_EQ(whole.size(), 4U);
  EXPECT_EQ(whole[0].validated, 160);
  for (const int killed_after : {1, 3}) {
    const fs::path folder = scratch / ("killed" + std::to_string(killed_after));
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        train_folds(folded_run(), {.out = folder}, [&](const FoldResult& done) {
          if (done.fold == killed_after) ::raise(SIGKILL);
        });
      } catch (...) {
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(holds_folds(folder));
    EXPECT_EQ(settings_kept_in(folder).folds, 4);
    const auto resumed = train_folds(folded_run(), {.out = folder, .resume = true}, nothing);
    EXPECT_EQ(values_of(resumed), values_of(whole));
  }
  // A fold's own run says which samples it validated on.
  EXPECT_EQ(settings_kept_in(scratch / "whole" / "fold-2").fold, 2);
}

void expect_refused(const TrainSettings& settings, const TrainOptions& options, const std::string& words) {
  try {
    train_folds(settings, options, [](const FoldResult&) {});
    ADD_FAILURE() << "is taken: " << words;
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), words));
  }
}

// Ten samples, two of each thing.
class PairTask : public Task {
 public:
  std::int64_t size() const override { return 10; }
  std::int64_t training_count() const override { return 8; }
  bool follows_on(std::int64_t index) const override { return index % 2 == 1; }
  void fill(std::span<const std::int64_t>, std::uint64_t, bool, std::span<Tensor>) const override {}
  void fill_inputs(std::span<const std::int64_t>, std::span<Tensor>, ThreadPool&) const override {}
  std::vector<Metric> quality(std::span<const std::int64_t>, std::span<const Tensor>) const override {
    return {};
  }
  nlohmann::json describe() const override { return nlohmann::json::object(); }
  data::ForcedOrder forced_order() const override { return forced; }
  std::string augments_by() const override { return augmented; }
  data::ForcedOrder forced;
  std::string augmented;
};

TEST(Folds, DoNotCutWhatBelongsTogether) {
  std::vector<std::int64_t> sizes;
  for (int fold = 1; fold <= 3; ++fold) {
    const auto task = folded(std::make_unique<PairTask>(), {.pool = nullptr, .folds = 3, .fold = fold}, true);
    sizes.push_back(task->size() - task->training_count());
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{2, 4, 4}));
}

TEST(Folds, NeedSamplesThatCanBeReadInAnyOrder) {
  const TaskSettings settings{.pool = nullptr, .folds = 2, .fold = 1};
  auto ordered = std::make_unique<PairTask>();
  ordered->forced.shards = {0, 5};
  EXPECT_THROW(folded(std::move(ordered), settings, false), Error);
  auto augmented = std::make_unique<PairTask>();
  augmented->augmented = "draws on others";
  EXPECT_NO_THROW(folded(std::make_unique<PairTask>(*augmented), settings, false));
  EXPECT_THROW(folded(std::move(augmented), settings, true), Error);
}

TEST(Folds, AreRefusedByNameBeforeAnythingIsKept) {
  const ScratchFolder scratch;
  TrainSettings settings = folded_run();
  settings.folds = 1;
  expect_refused(settings, {}, "one fold leaves nothing to train on");
  settings = folded_run();
  settings.validation = "other.h5";
  expect_refused(settings, {}, "validates on a part of the data");
  settings = folded_run();
  settings.model_options = {"fold=2"};
  expect_refused(settings, {}, "all folds are trained");
  settings = folded_run();
  settings.folds = 700;
  expect_refused(settings, {.out = scratch / "many"}, "of 640 samples fold 1 of 700 has none");
  EXPECT_FALSE(fs::exists(scratch / "many"));
  train_folds(folded_run(), {.out = scratch / "there"}, [](const FoldResult&) {});
  expect_refused(folded_run(), {.out = scratch / "there"}, "holds a cross validation already");
}

}  // namespace
}  // namespace superstep::run
