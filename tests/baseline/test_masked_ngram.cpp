#include <gtest/gtest.h>

#include <cmath>

#include "superstep/baseline/masked_ngram.h"
#include "superstep/data/hdf5.h"
#include "tests/baseline/run_baseline.h"
#include "tests/data/expect_error.h"

namespace superstep::baseline {
namespace {

TEST(NeighborModel, IsADistributionThatLearns) {
  NeighborModel model(6);
  for (int i = 0; i < 20; ++i) model.count(1, 2, 3), model.count(4, 5, 3);
  for (const auto& [left, right] : {std::pair(1, 3), std::pair(4, 3), std::pair(5, 5), std::pair(1, 0)}) {
    double sum = 0;
    for (int word = 0; word < 6; ++word) {
      EXPECT_GT(model.probability(left, word, right), 0);
      sum += model.probability(left, word, right);
    }
    EXPECT_NEAR(sum, 1, 1e-12);
  }
  EXPECT_GT(model.probability(1, 2, 3), 0.9);
  EXPECT_GT(model.probability(4, 5, 3), 0.9);
}

// A word seen often, but always in one place, is less likely elsewhere than one seen in many places.
TEST(NeighborModel, CountsPlacesAndNotTimes) {
  NeighborModel model(40);
  for (int i = 0; i < 100; ++i) model.count(1, 2, 3);
  for (int place = 10; place < 20; ++place) model.count(place, 4, place + 10);
  EXPECT_GT(model.probability(1, 2, 3), model.probability(1, 4, 3));
  EXPECT_GT(model.probability(30, 4, 31), 3 * model.probability(30, 2, 31));
}

TEST(MaskedText, GrammarIsBelowCountsAndBelowUniform) {
  const ScratchFolder folder;
  generate("distilbert", folder / "text.h5", 600, {"vocabulary=1000"});
  const Report report = run_baseline("distilbert", folder / "text.h5", folder / "out.csv");
  std::printf("%s", report.text.c_str());
  EXPECT_LT(metric(report, "loss"), metric(report, "floor_loss"));
  EXPECT_LT(metric(report, "floor_loss"), metric(report, "uniform_loss"));
  EXPECT_NEAR(metric(report, "uniform_loss"), std::log(1000), 1e-12);
  EXPECT_TRUE(std::filesystem::exists(folder / "out.csv"));
}

TEST(MaskedText, RefusesWhatIsNotText) {
  const ScratchFolder folder;
  data::Hdf5Writer(folder / "a.h5").close();
  expect_error(ErrorCode::bad_file, {"a.h5", "does not describe a language"},
               [&] { run_baseline("distilbert", folder / "a.h5"); });
  data::Hdf5Writer file(folder / "b.h5");
  file.set_attribute("", "parameters",
                     std::string(R"({"vocabulary":100,"zipf_exponent":1,"zipf_shift":0,"recursion":0.1})"));
  for (const char* name : {"tokens", "input_ids", "labels"})
    file.write(name, Tensor::from<std::int32_t>({1, 3}, {2, 100, 3}));
  file.close();
  expect_error(ErrorCode::bad_file, {"b.h5", "'tokens' holds 100, which is no token"},
               [&] { run_baseline("distilbert", folder / "b.h5"); });
}

}  // namespace
}  // namespace superstep::baseline
