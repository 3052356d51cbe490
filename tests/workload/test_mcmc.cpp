// Rows of returns: from tables, standardised over the window, of one series.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "superstep/physics/generator.h"
#include "superstep/workload/task.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::workload {
namespace {

class Returns : public ::testing::Test {
 protected:
  std::unique_ptr<Task> open(const std::filesystem::path& data, std::vector<std::string> options = {}) {
    return open_task(
        find_workload("mcmc"),
        {.data = data, .samples = 0, .seed = 3, .model_options = std::move(options), .pool = &pool_});
  }
  // A column of n returns 0, 1, 4, 9, ...
  std::filesystem::path squares(int count, const std::string& last = {}) {
    const auto path = folder_ / "returns.csv";
    std::ofstream file(path);
    file << "day,return\n";
    for (int t = 0; t < count; ++t) file << t << "," << t * t << "\n";
    if (!last.empty()) file << count << "," << last << "\n";
    return path;
  }
  ScratchFolder folder_;
  ThreadPool pool_{1};
};

TEST_F(Returns, OfAColumnAreRowsOfLags) {
  const auto task = open(squares(40), {"window=10", "ahead=5", "first=2"});
  EXPECT_EQ(task->training_count(), 10);
  EXPECT_EQ(task->size(), 15);
  const std::int64_t first[] = {0};
  std::vector<Tensor> row = {Tensor(ElementType::f32, {1, 22}), Tensor(ElementType::f32, {1, 1})};
  task->fill(first, 0, false, row);
  // Row 2 is of day 24: 24^2, and before it 23^2, 22^2, ...; one scale for all.
  const double scale = (row[0].at(0) - row[0].at(1)) / (23 * 23 - 22 * 22);
  EXPECT_NEAR((row[1].at(0) - row[0].at(0)) / scale, 24 * 24 - 23 * 23, 1e-2);
  EXPECT_NEAR((row[0].at(0) - row[0].at(21)) / scale, 23 * 23 - 2 * 2, 1e-1);
}

TEST_F(Returns, AreStandardisedByTheWindow) {
  const auto task = open({}, {"window=80", "ahead=30"});
  std::vector<std::int64_t> window(80);
  for (std::size_t i = 0; i < window.size(); ++i) window[i] = static_cast<std::int64_t>(i);
  std::vector<Tensor> rows = {Tensor(ElementType::f32, {80, 22}), Tensor(ElementType::f32, {80, 1})};
  task->fill(window, 0, false, rows);
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < 80; ++i) sum += rows[1].at(i), squares += rows[1].at(i) * rows[1].at(i);
  EXPECT_NEAR(sum / 80, 0, 1e-5);
  EXPECT_NEAR(squares / 80, 1, 1e-5);
}

TEST_F(Returns, KnowWhatForecastsAreHeldAgainst) {
  const auto task = open({}, {"window=500", "ahead=2000"});
  std::vector<std::int64_t> ahead;
  for (std::int64_t i = 500; i < 2500; ++i) ahead.push_back(i);
  const ForecastReferences found = task->forecast_references(ahead);
  ASSERT_TRUE(found.floor && found.ceiling);
  EXPECT_LT(found.floor->value, found.ceiling->value);
  // In units of the data, some nats more: returns are hundredths.
  EXPECT_NEAR(found.log_unit, std::log(0.01), 0.7);
  EXPECT_FALSE(task->forecast_references({}).floor);
}

TEST_F(Returns, AreOneSeriesOfFiniteNumbers) {
  expect_error(ErrorCode::bad_file, {"returns.csv", "y"}, [&] {
    open(squares(60, "nan"), {"window=10", "ahead=40"});
  });
  expect_error(ErrorCode::invalid_argument, {"has 8 rows from row 0 on, a window takes 10"},
               [&] { open(squares(30), {"window=10"}); });
  const auto path = folder_ / "rows.csv";
  const data::GeneratorEntry& entry = data::find_generator("mcmc");
  const std::vector<std::string> short_series = {"rows=30"};
  entry.make(Options(entry.options, short_series))
      ->write({.path = path, .seed = 1, .samples = 60, .pool = &pool_});
  EXPECT_EQ(open(path, {"window=20", "ahead=10"})->size(), 30);
  expect_error(ErrorCode::bad_file, {"rows 15 to 44 are of series 0 and 1"}, [&] {
    open(path, {"window=20", "ahead=10", "first=15"});
  });
}

}  // namespace
}  // namespace superstep::workload
