// --numerics and compare-numerics: as a user runs them and gets them wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

std::string said(const ScratchFolder& folder, const std::string& arguments, int code) {
  const Outcome outcome = run_program(folder / "", arguments);
  EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.output << outcome.errors;
  return outcome.output + outcome.errors;
}

TEST(NumericsOptions, TrainAndServeAsAMachineComputes) {
  const ScratchFolder folder;
  EXPECT_TRUE(contains(said(folder, "list numerics", 0), "gc200-16.16"));
  said(folder,
       "train mlp --samples 600 --steps 3 --batch 64 --numerics gc200 --numerics-of 'fc*=16.16' --out run",
       0);
  const auto config = nlohmann::json::parse(content_of(folder / "run/config.json"));
  EXPECT_EQ(config.at("backend"), "numerics:gc200;fc*=16.16");
  EXPECT_TRUE(contains(said(folder, "train mlp --resume run --steps 4 --numerics cs2", 2), "--numerics"));
  said(folder, "train mlp --resume run --steps 4", 0);
  const std::string served =
      said(folder, "infer mlp --weights run --samples 64 --batch 64 --numerics a100-tf32", 0);
  EXPECT_TRUE(contains(served, "as a100-tf32 computes"));
}

TEST(NumericsOptions, RefuseWhatTheyCannotHonor) {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    EXPECT_TRUE(contains(said(folder, arguments, 2), part)) << arguments;
  };
  refused("infer mlp --samples 64 --numerics gc201", "gc201");
  refused("infer mlp --samples 64 --numerics h100", "nothing is known");
  refused("infer mlp --samples 64 --numerics f16:chunk=0", "chunk");
  refused("infer mlp --samples 64 --numerics-of 'fc*=f16'", "--numerics");
  refused("infer mlp --samples 64 --numerics f32 --numerics-of 'none*=f16'", "none*");
  refused("infer mlp --samples 64 --on reference --numerics f32", "--on reference");
  EXPECT_TRUE(
      contains(said(folder, "infer mlp --samples 64 --numerics f16 --precision bf16", 1), "--precision f32"));
  EXPECT_TRUE(contains(
      said(folder, "train mlp --samples 600 --steps 2 --batch 64 --micro-batch 32 --numerics f16 --no-out",
           1),
      "--micro-batch"));
}

TEST(CompareNumericsCommand, NamesANodeAndSaysWhereLossesPart) {
  const ScratchFolder folder;
  const std::string text = said(folder,
                                "compare-numerics mlp --with f16 --train 6 --seeds 2 --samples 600 --batch "
                                "16 --json n.json --page n.html",
                                0);
  EXPECT_TRUE(contains(text, "from seed to seed"));
  const auto found = nlohmann::json::parse(content_of(folder / "n.json"));
  EXPECT_EQ(found.at("trainings").size(), 2u);
  EXPECT_EQ(found.at("trainings")[0].at("of").size(), 6u);
  EXPECT_NE(found.at("trainings")[0].at("of"), found.at("trainings")[0].at("with"));
  EXPECT_GT(found.at("difference").get<double>(), 0);
  EXPECT_TRUE(found.at("culprit").is_string());
  EXPECT_TRUE(contains(content_of(folder / "n.html"), "<svg"));
  EXPECT_TRUE(contains(said(folder, "compare-numerics mlp --with f32", 0), "the same bits"));
  EXPECT_TRUE(contains(said(folder, "compare-numerics mlp --with nobody", 2), "nobody"));
}

}  // namespace
}  // namespace superstep
