// Time to quality: where a log passes its target, the law that steps follow, and what is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "superstep/base/error.h"
#include "superstep/study/quality/costs.h"

namespace superstep::study {
namespace {

namespace fs = std::filesystem;

QualitySettings settings() {
  return {.workload = "mlp",
          .options = {},
          .until = {.metric = "rmse", .value = 0.25},
          .batches = {32, 64},
          .precisions = {"f32"},
          .seeds = 1,
          .samples = 1000,
          .machines = {"a100-40gb"},
          .units = {1},
          .prices = {},
          .out = {}};
}

class Log {
 public:
  explicit Log(const std::string& text)
      : path_(fs::temp_directory_path() / ("superstep-quality-" + std::to_string(::getpid()) + ".jsonl")) {
    std::ofstream(path_) << text;
  }
  ~Log() { fs::remove(path_); }
  Training read() const {
    Training training;
    QualitySettings asked = settings();
    asked.workload = "braggnn";
    asked.until.metric = "error_px_mean";
    read_crossing(path_, asked, training);
    return training;
  }

 private:
  fs::path path_;
};

TEST(Crossings, LieBetweenTwoEpochs) {
  const Training training = Log("{\"epoch\":1,\"step\":10,\"error_px_mean\":0.5,\"seconds\":1}\n"
                                "{\"epoch\":2,\"step\":20,\"error_px_mean\":0.3,\"seconds\":2}\n"
                                "{\"epoch\":3,\"step\":30,\"error_px_mean\":0.2,\"seconds\":3}\n"
                                "{\"event\":\"finished\",\"error_px_mean\":0.2}\n")
                                .read();
  EXPECT_EQ(training.ending, Ending::reached);
  EXPECT_DOUBLE_EQ(training.steps, 25);
  EXPECT_DOUBLE_EQ(training.steps_low, 20);
  EXPECT_DOUBLE_EQ(training.steps_high, 30);
  EXPECT_DOUBLE_EQ(training.seconds, 3);
}

TEST(Crossings, MayNotBeThere) {
  const Training training = Log("{\"epoch\":1,\"step\":10,\"error_px_mean\":0.5}\n").read();
  EXPECT_EQ(training.ending, Ending::not_reached);
  EXPECT_DOUBLE_EQ(training.best, 0.5);
  EXPECT_THROW(Log("{\"event\":\"started\"}\n").read(), Error);
  EXPECT_THROW(Log("{\n").read(), Error);
}

std::vector<Reached> rows_of(const BatchLaw& law, const std::vector<std::int64_t>& batches) {
  std::vector<Reached> rows;
  for (const std::int64_t batch : batches)
    rows.push_back({.precision = law.precision,
                    .batch = batch,
                    .reached = 1,
                    .seeds = 1,
                    .steps = law.steps_at(static_cast<double>(batch)),
                    .steps_low = 1});
  return rows;
}

TEST(BatchLaws, AreFoundAgain) {
  const BatchLaw truth{.precision = "f32", .least_steps = 120, .critical_batch = 300};
  const auto found = law_of(rows_of(truth, {32, 64, 256, 1024}), "f32");
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->least_steps, truth.least_steps, 1e-6);
  EXPECT_NEAR(found->critical_batch, truth.critical_batch, 1e-6);
  EXPECT_LT(found->largest_deviation, 1e-9);
  EXPECT_FALSE(law_of(rows_of(truth, {32, 64}), "bf16"));
}

TEST(BatchLaws, NeedTwoBatchesThatEverySeedReached) {
  const BatchLaw truth{.precision = "f32", .least_steps = 120, .critical_batch = 300};
  EXPECT_FALSE(law_of(rows_of(truth, {64}), "f32"));
  std::vector<Reached> rows = rows_of(truth, {64, 128});
  rows[1].seeds = 2;
  EXPECT_FALSE(law_of(rows, "f32"));
  // Steps that grow with the batch are no such law.
  rows = rows_of(truth, {64, 128});
  std::swap(rows[0].steps, rows[1].steps);
  EXPECT_FALSE(law_of(rows, "f32"));
}

// Quality is looked at once an epoch: steps of the first one follow from the data, not from the batch.
TEST(BatchLaws, AreNotMadeOfFirstEpochs) {
  const BatchLaw truth{.precision = "f32", .least_steps = 120, .critical_batch = 300};
  std::vector<Reached> rows = rows_of(truth, {32, 64, 128});
  rows[0].steps_low = 0;
  rows[0].steps = 1e6;
  const auto found = law_of(rows, "f32");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->batches, 2);
  EXPECT_NEAR(found->critical_batch, 300, 1e-6);
  rows[1].steps_low = 0;
  EXPECT_FALSE(law_of(rows, "f32"));
}

TEST(QualityCosts, AreStepsTimesAStep) {
  QualitySettings asked = settings();
  asked.prices["a100-40gb"] = 3600;
  Reached row{.precision = "f32",
              .batch = 64,
              .reached = 1,
              .seeds = 1,
              .steps = 100,
              .steps_low = 90,
              .steps_high = 120};
  const auto one = costs_of(asked, {row});
  ASSERT_EQ(one.size(), 1U);
  ASSERT_TRUE(one[0].seconds.value) << one[0].seconds.words;
  row.steps *= 2;
  const auto two = costs_of(asked, {row});
  EXPECT_NEAR(*two[0].seconds.value, 2 * *one[0].seconds.value, 1e-9);
  EXPECT_NEAR(*one[0].money.value, *one[0].seconds.value, 1e-12) << "a price of one per second";
  EXPECT_NEAR(*one[0].joules.value, 400 * *one[0].seconds.value, 1e-9) << "the data sheet's 400 W";
  EXPECT_TRUE(one[0].best);
  row.seeds = 2;
  EXPECT_FALSE(costs_of(asked, {row})[0].seconds.value) << "one of two seeds did not reach it";
}

TEST(QualitySettings, AreRefusedByName) {
  const auto refused = [](auto change) {
    QualitySettings asked = settings();
    change(asked);
    EXPECT_THROW(check(asked), Error);
  };
  EXPECT_NO_THROW(check(settings()));
  refused([](QualitySettings& asked) { asked.workload = "nope"; });
  refused([](QualitySettings& asked) { asked.until.metric = "nope"; });
  refused([](QualitySettings& asked) { asked.precisions = {"f8"}; });
  refused([](QualitySettings& asked) { asked.precisions = {"f32", "int8"}; });
  QualitySettings halves = settings();
  halves.precisions = {"f32", "bf16", "f16"};
  EXPECT_NO_THROW(check(halves));
  refused([](QualitySettings& asked) { asked.machines = {"nope"}; });
  refused([](QualitySettings& asked) { asked.batches = {2000}; });
  refused([](QualitySettings& asked) { asked.prices["gc200"] = 1; });
  EXPECT_THROW(rate_rule("cubic"), Error);
}

}  // namespace
}  // namespace superstep::study
