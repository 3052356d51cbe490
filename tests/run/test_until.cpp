// The goal of a run: how it is written, and which way of a metric is better.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/error.h"
#include "superstep/run/train/until.h"
#include "tests/contains.h"
#include "tests/expect_error.h"

namespace superstep::run {
namespace {

TEST(UntilTest, TakesMetricAndFiniteValue) {
  EXPECT_EQ(parse_until("rmse=0.1"), (Until{"rmse", 0.1}));
  EXPECT_EQ(parse_until("r2=-1e-3"), (Until{"r2", -1e-3}));
  for (const char* text :
       {"", "rmse", "=1", "rmse=", "rmse=0,5", "rmse=nan", "rmse=inf", "rmse=1x", "rmse= 1", "rmse=1=2"})
    EXPECT_THROW(parse_until(text), Error) << text;
}

TEST(UntilTest, KnowsMetricsAndTheirDirections) {
  const auto& uno = workload::find_workload("uno");
  EXPECT_NO_THROW(check_until({"r2", 0.5}, uno));
  EXPECT_EQ(to_string({"r2", 0.5}, uno), "r2 >= 0.5");
  EXPECT_EQ(to_string({"mse", 0.5}, uno), "mse <= 0.5");
  const auto quality = [](double r2) { return std::vector<Metric>{{.name = "r2", .value = r2, .unit = ""}}; };
  EXPECT_FALSE(reaches({"r2", 0.5}, uno, quality(-188)));
  EXPECT_TRUE(reaches({"r2", 0.5}, uno, quality(0.5)));
  EXPECT_FALSE(reaches({"r2", 0.5}, uno, quality(std::nan(""))));
  EXPECT_FALSE(reaches({"mse", 0.5}, uno, quality(0.9))) << "not measured";
  try {
    check_until({"r", 1}, uno);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "its metrics are r2, mse, mae"));
  }
}

// Every metric of every workload, a little better and a little worse than what is asked for.
TEST(UntilTest, OfEveryMetricOfTheZoo) {
  int higher = 0, lower = 0;
  for (const workload::Workload& workload : workload::workloads())
    for (const workload::MetricSpec& metric : workload.metrics) {
      SCOPED_TRACE(workload.name + " " + metric.name);
      const Until until{metric.name, 0.5};
      EXPECT_NO_THROW(check_until(until, workload));
      const auto at = [&](double value) {
        return reaches(until, workload,
                       {{.name = "another", .value = 0.5, .unit = ""},
                        {.name = metric.name, .value = value, .unit = ""}});
      };
      EXPECT_TRUE(at(0.5)) << "as good is good enough";
      EXPECT_EQ(at(0.5001), metric.higher_is_better);
      EXPECT_EQ(at(0.4999), !metric.higher_is_better);
      EXPECT_FALSE(at(std::nan("")));
      EXPECT_FALSE(reaches(until, workload, {})) << "nothing was measured";
      EXPECT_EQ(to_string(until, workload), metric.name + (metric.higher_is_better ? " >= 0.5" : " <= 0.5"));
      ++(metric.higher_is_better ? higher : lower);
    }
  EXPECT_GT(higher, 3);
  EXPECT_GT(lower, 3);
}

TEST(UntilTest, AWorkloadWithoutQualityHasNoGoal) {
  expect_error(ErrorCode::invalid_argument, {"'rnn-k1' measures no quality", "--steps or --epochs"}, [] {
    check_until({"rmse", 1}, workload::find_workload("rnn-k1"));
  });
}

}  // namespace
}  // namespace superstep::run
