// superstep sweep as people call it: every combination, what does not fit, what it refuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

TEST(SweepCommand, PredictsEveryCombinationAsPredictDoes) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "",
                                      "sweep braggnn --on gc200,a100-40gb --precision f16 --micro-batch "
                                      "64..256 --replicas 1,2 --json s.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "12 of 12 configurations predicted"));
  const auto results = nlohmann::json::parse(content_of(folder / "s.json"));
  ASSERT_EQ(results.size(), 12U);
  const Outcome one = run_program(
      folder / "", "predict braggnn --on gc200 --precision f16 --micro-batch 128 --replicas 2 --json p.json");
  ASSERT_EQ(one.code, 0) << one.errors;
  const auto alone = nlohmann::json::parse(content_of(folder / "p.json"));
  int found = 0;
  for (const auto& result : results) {
    if (result.at("id") != "braggnn-train-gc200-f16-128x1x2") continue;
    ++found;
    EXPECT_EQ(result.at("metrics").at("step_time"), alone.at("metrics").at("step_time"));
  }
  EXPECT_EQ(found, 1);
}

TEST(SweepCommand, CountsWhatDoesNotFitAndKeepsIt) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(
      folder / "", "sweep resnet50 --on gc200 --precision f16 --micro-batch 1,512 --all --json s.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "does not fit"));
  EXPECT_TRUE(contains(content_of(folder / "s.json"), "\"fits\":false") ||
              contains(content_of(folder / "s.json"), "\"fits\": false"));
}

struct RefusedSweep {
  const char *arguments, *said;
};
class SweepRefuses : public testing::TestWithParam<RefusedSweep> {};
TEST_P(SweepRefuses, ByName) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", std::string("sweep ") + GetParam().arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, GetParam().said)) << outcome.errors;
}
INSTANTIATE_TEST_SUITE_P(Calls, SweepRefuses,
                         testing::Values(RefusedSweep{"braggn", "braggnn"},
                                         RefusedSweep{"mlp --on gc2000", "gc200"},
                                         RefusedSweep{"mlp --micro-batch 8..", "--micro-batch"},
                                         RefusedSweep{"mlp --replicas 0", "--replicas"},
                                         RefusedSweep{"mlp --precision f33", "precision"},
                                         RefusedSweep{"mlp --recompute maybe", "recompute"}));

}  // namespace
}  // namespace superstep
