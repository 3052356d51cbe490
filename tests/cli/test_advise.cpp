// superstep advise as people call it: what it says, what it refuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

TEST(AdviseCommand, RanksMachinesAndSaysWhy) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "advise mlp --json advice.json --out advice.html");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  for (const char* part : {"place", "gc200", "a100-40gb", "bound by", "serves only", "none measured"})
    EXPECT_TRUE(contains(outcome.output, part));
  const auto json = nlohmann::json::parse(content_of(folder / "advice.json"));
  EXPECT_TRUE(contains(json.dump(), "\"goal\":\"throughput\""));
  EXPECT_TRUE(contains(content_of(folder / "advice.html"), "Ranked by throughput"));
}

TEST(AdviseCommand, TakesAFileOfAModel) {
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", "onnx export braggnn --out model.onnx").code, 0);
  const Outcome outcome = run_program(
      folder / "", "advise model.onnx --mode infer --for latency --at-most 5ms --on gc200,groqchip");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "groqchip"));
  EXPECT_TRUE(contains(outcome.output, "a call within 5 ms"));
}

// The same machine, driven by eager PyTorch, launches operators one by one.
TEST(AdviseCommand, RanksMachinesAsAFrameworkDrivesThem) {
  const ScratchFolder folder;
  const auto rate = [&](const std::string& options) {
    const Outcome outcome = run_program(
        folder / "", "advise mlp --precision tf32 --on a100-40gb,h100 --json advice.json " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(contains(outcome.output, "driven by pytorch-eager"), !options.empty());
    const auto json = nlohmann::json::parse(content_of(folder / "advice.json"));
    return (json.is_array() ? json : json["results"])[0]["metrics"]["throughput"]["value"].get<double>();
  };
  EXPECT_LT(rate("--stack pytorch-eager"), 0.9 * rate(""));
  const Outcome all = run_program(folder / "", "advise mlp --stack tensorflow-xla");
  ASSERT_EQ(all.code, 0) << all.errors;
  EXPECT_TRUE(contains(all.output, "a100-40gb"));
  EXPECT_FALSE(contains(all.output, "gc200"));
}

struct Refused {
  const char *arguments, *said;
};
class AdviseRefuses : public testing::TestWithParam<Refused> {};
TEST_P(AdviseRefuses, ByName) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", std::string("advise ") + GetParam().arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, GetParam().said));
}
INSTANTIATE_TEST_SUITE_P(Calls, AdviseRefuses,
                         testing::Values(Refused{"mlp --for thruoghput", "throughput"},
                                         Refused{"mlp --for cost", "--price"},
                                         Refused{"mlp --for cost --price gc200", "MACHINE=NUMBER"},
                                         Refused{"mlp --for cost --price gc2000=1", "gc200"},
                                         Refused{"mlp --at-most 5kg", "write 5ms"},
                                         Refused{"mlp --at-most -5ms", "write 5ms"},
                                         Refused{"mlp --mode infer --for time-to-quality", "--mode train"},
                                         Refused{"braggn", "braggnn"}, Refused{"mlp --on gc2000", "gc200"},
                                         Refused{"mlp --precision f33", "precision"},
                                         Refused{"mlp --stack pytorch-eagr", "pytorch-eager"},
                                         Refused{"mlp --on gc200,a100-40gb --stack pytorch-eager", "gc200"},
                                         Refused{"mlp --budget-units 0", "budget-units"}));

}  // namespace
}  // namespace superstep
