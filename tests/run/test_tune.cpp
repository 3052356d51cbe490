// The timed search: what is tried, what is remembered, and that broken memory does no harm.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "superstep/base/error.h"
#include "superstep/run/tune.h"
#include "tests/contains.h"
#include "tests/target/models.h"

namespace superstep::run {
namespace {

class TuneTest : public ::testing::Test {
 protected:
  TuneTest()
      : folder_(std::filesystem::temp_directory_path() / ("superstep-tune-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TuneTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path file() const { return folder_ / "tuning.json"; }

  std::filesystem::path folder_;
};

void fill_random(std::span<Tensor> inputs) {
  for (Tensor& input : inputs) input = test::random_tensor(input.type(), input.shape(), 1);
}

graph::Graph network(std::int64_t batch) { return test::perceptron(batch); }

Tuning tuned(TuningCache& cache, std::int64_t batch, int threads = 1) {
  return tune(target::find_target("cpu"), network, {.batch = batch, .threads = threads}, fill_random, cache,
              {.seconds = 0.01});
}

target::PlanSummary plan_of(std::int64_t batch, int threads = 1) {
  return target::find_target("cpu").compile(network, {.batch = batch, .threads = threads})->summary();
}

std::vector<std::int64_t> micro_batches(const std::vector<TuneCandidate>& candidates) {
  std::vector<std::int64_t> result;
  for (const TuneCandidate& candidate : candidates) result.push_back(candidate.micro_batch);
  return result;
}

TEST(TuneCandidates, LieAroundTheCostModelsChoice) {
  EXPECT_EQ(micro_batches(tune_candidates(512, 16, 1, true)), (std::vector<std::int64_t>{16, 8, 32, 4, 64}));
  EXPECT_EQ(micro_batches(tune_candidates(12, 4, 1, true)), (std::vector<std::int64_t>{4, 2, 12, 1}));
  EXPECT_EQ(micro_batches(tune_candidates(7, 7, 1, true)), (std::vector<std::int64_t>{7, 1}));
  EXPECT_EQ(micro_batches(tune_candidates(1, 1, 1, true)), (std::vector<std::int64_t>{1}));
}

TEST(TuneCandidates, KeepABatchWholeThatCannotBeSplit) {
  EXPECT_EQ(micro_batches(tune_candidates(64, 64, 1, false)), (std::vector<std::int64_t>{64}));
}

TEST(TuneCandidates, TryFewerThreads) {
  const auto candidates = tune_candidates(8, 8, 4, false);
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[1].threads, 2);
  EXPECT_EQ(candidates[2].threads, 1);
}

TEST_F(TuneTest, RemembersWhatItFound) {
  TuningCache cache(file());
  const Tuning first = tuned(cache, 32);
  EXPECT_FALSE(first.cached);
  EXPECT_GE(first.tried.size(), 3u);
  EXPECT_GT(first.chosen.seconds, 0);
  for (const TuneCandidate& candidate : first.tried) EXPECT_GE(candidate.seconds, first.chosen.seconds);
  const Tuning again = tuned(cache, 32);
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.chosen.micro_batch, first.chosen.micro_batch);
  EXPECT_TRUE(contains(to_string(again), "tuned before: micro-batch"));
  EXPECT_FALSE(tuned(cache, 64).cached);     // another batch
  EXPECT_FALSE(tuned(cache, 32, 2).cached);  // other threads
}

TEST_F(TuneTest, KeysTellModelsApart) {
  const target::PlanSummary plan = plan_of(8);
  const std::string key = tuning_key(network(8), "cpu", plan);
  EXPECT_EQ(key, tuning_key(network(8), "cpu", plan_of(8)));
  EXPECT_NE(key, tuning_key(test::pooled_network(8), "cpu", plan));
  EXPECT_NE(key, tuning_key(network(8), "reference", plan));
  EXPECT_NE(key, tuning_key(network(8), "cpu", plan_of(8, 2)));
}

TEST_F(TuneTest, KeysTellKernelsApartButNotTheTimesOfAPlan) {
  const target::PlanSummary plan = plan_of(8);
  const std::string key = tuning_key(network(8), "cpu", plan);
  target::PlanSummary slower = plan, other = plan;
  slower.compile_seconds += 1;
  slower.steps.back().seconds += 1;
  EXPECT_EQ(key, tuning_key(network(8), "cpu", slower));
  other.steps.back().kernel += ", in larger tiles";
  EXPECT_NE(key, tuning_key(network(8), "cpu", other));
}

TEST_F(TuneTest, BrokenFilesCountAsEmpty) {
  const std::string key = tuning_key(network(32), "cpu", plan_of(32));
  const std::string contents[] = {
      "",
      "{",
      "[]",
      "null",
      R"({"schema": "another", "entries": {}})",
      R"({"schema": "superstep-tuning/1"})",
      R"({"schema": "superstep-tuning/1", "entries": [1]})",
      R"({"schema": "superstep-tuning/1", "entries": {")" + key + R"(": 3}})",
      R"({"schema": "superstep-tuning/1", "entries": {")" + key + R"(": {"micro_batch": 0, "threads": 1}}})",
      R"({"schema": "superstep-tuning/1", "entries": {")" + key + R"(": {"micro_batch": 8, "threads": -1}}})",
      R"({"schema": "superstep-tuning/1", "entries": {")" + key +
          R"(": {"micro_batch": "8", "threads": 1}}})"};
  for (const std::string& content : contents) {
    std::ofstream(file()) << content;
    TuningCache cache(file());
    EXPECT_FALSE(cache.find(key)) << content;
    cache.add(key, {.micro_batch = 4, .threads = 1, .seconds = 1});
    ASSERT_TRUE(cache.find(key)) << content;
    EXPECT_EQ(cache.find(key)->micro_batch, 4);
  }
}

TEST_F(TuneTest, AnEntryThatDoesNotDivideTheBatchIsNotTaken) {
  TuningCache cache(file());
  cache.add(tuning_key(network(32), "cpu", plan_of(32)), {.micro_batch = 5, .threads = 1, .seconds = 1});
  EXPECT_FALSE(tuned(cache, 32).cached);
}

}  // namespace
}  // namespace superstep::run
