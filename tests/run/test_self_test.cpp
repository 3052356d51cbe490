// What a run keeps for those who serve it: a few samples with their answers, and the range of its inputs.
#include <gtest/gtest.h>

#include <fstream>

#include "superstep/base/file.h"
#include "superstep/run/serve/self_test.h"
#include "superstep/run/train/input_ranges.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

Tensor row(std::initializer_list<float> values) {
  return Tensor::from<float>({1, static_cast<std::int64_t>(values.size())}, std::vector<float>(values));
}

TEST(SelfTest, IsOfItsWeightsAlone) {
  const ScratchFolder folder;
  const std::map<std::string, Tensor> states{{"w", row({1, 2})}}, others{{"w", row({1, 3})}};
  EXPECT_EQ(read_self_test(folder / "", states), std::nullopt);
  write_self_test(folder / "", states, {.inputs = {{"x", row({1, 2})}}, .outputs = {{"y", row({3})}}});
  const auto back = read_self_test(folder / "", states);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rows(), 1);
  EXPECT_EQ(back->outputs.at("y").at(0), 3);
  EXPECT_EQ(read_self_test(folder / "", others), std::nullopt) << "trained on since then";
  const std::string whole = read_text_file(folder / "selftest.safetensors");
  std::string damaged = whole;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  write_file_atomically(folder / "selftest.safetensors", damaged);
  expect_error(ErrorCode::bad_file, {"self-test"}, [&] { read_self_test(folder / "", states); });
}

TEST(SelfTest, SeesAnswersThatAreOthers) {
  const SelfTest test{.inputs = {{"x", row({1})}}, .outputs = {{"y", row({1, -100})}}};
  const auto difference = [&](std::initializer_list<float> found, const char* precision = "f32") {
    return difference_from(test, {{"y", row(found)}}, precision);
  };
  EXPECT_EQ(difference({1.05F, -100}), "");
  EXPECT_TRUE(contains(difference({1.2F, -100}), "1.2"));
  EXPECT_EQ(difference({5, -97}, "bf16"), "");
  EXPECT_NE(difference({1, 100}, "bf16"), "");
  EXPECT_NE(difference({std::numeric_limits<float>::quiet_NaN(), -100}), "");
  EXPECT_NE(difference({1, -100, 0}), "");
  EXPECT_NE(difference_from(test, {}, "f32"), "");
}

TEST(InputRanges, AreKeptAndReadWhereTheyAreWhole) {
  const ScratchFolder folder;
  write_input_ranges(folder / "", {.ranges = {{"x", -1, 3}}, .samples = 5});
  const auto ranges = read_input_ranges(folder / "");
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_EQ(ranges[0].name, "x");
  EXPECT_DOUBLE_EQ(ranges[0].least(), -1.4);
  EXPECT_DOUBLE_EQ(ranges[0].most(), 3.4);
  for (const char* damaged :
       {"", "[]", "{}", R"({"schema":"superstep-inputs/1","inputs":{"x":{"low":"a","high":1}}})"}) {
    std::ofstream(folder / "inputs.json") << damaged;
    EXPECT_TRUE(read_input_ranges(folder / "").empty()) << damaged;
  }
}

TEST(InputRanges, SayWhatIsOddAboutSamples) {
  EXPECT_TRUE(InputSurvey({.ranges = {{"x", 0, 1}}, .samples = 9}).findings().empty());
  EXPECT_TRUE(contains(InputSurvey({.ranges = {{"x", 2, 2}}, .samples = 9, .repeated = 8}).findings().at(0),
                       "all 9"));
  EXPECT_TRUE(contains(InputSurvey({.ranges = {{"x", 0, 1}}, .samples = 9, .repeated = 3}).findings().at(0),
                       "3 of 9"));
  EXPECT_TRUE(
      contains(InputSurvey({.ranges = {{"x", 2, 2}}, .samples = 9}).findings().at(0), "'x' is 2 everywhere"));
  EXPECT_TRUE(contains(InputSurvey({.samples = 9, .not_finite = 1}).findings().at(0), "NaN"));
}

}  // namespace
}  // namespace superstep::run
