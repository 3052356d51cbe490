// Every option that takes a number refuses what is none, in every command, before any work.
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

struct Numbers {
  const char *command, *options;  // options separated by spaces
};

constexpr Numbers commands[] = {
    {"train mlp",
     "--steps --epochs --samples --batch --micro-batch --replicas --memory-limit --learning-rate "
     "--seed --checkpoint-seconds --batch-norm-span --threads"},
    {"infer mlp", "--batch --samples --calibrate --accumulate --replicas --units --threads"},
    {"generate braggnn", "--samples --seed --threads"},
    {"bench gemm",
     "--batch --micro-batch --seconds --repeat --processes --rate --requests --ranks --iterations "
     "--pause --threads"},
    {"profile mlp", "--batch --micro-batch --runs --accumulate --replicas --units --threads"},
    {"predict mlp",
     "--micro-batch --device-iterations --loaders --sample-seconds --accumulate --replicas "
     "--units --threads"},
    {"graph mlp", "--batch --threads"},
    {"onnx export mlp --out x.onnx", "--batch --opset --seed"},
    {"onnx test .", "--relative --absolute"},
    {"validate rows.csv", "--fit --threads"},
    {"report", "--samples --threads"},
    {"scale mlp", "--ranks --batch --steps --samples --repeat --threads"},
    {"show x.npy", "--pictures --threads"},
    {"records list", "--most"},
};

TEST(NumbersOfEveryCommand, AreFiniteAndInTheirRange) {
  const ScratchFolder folder;
  for (const Numbers& each : commands) {
    std::istringstream options(each.options);
    for (std::string option; options >> option;)
      for (const char* value : {"-1", "-5", "nan", "inf", "1e999", "0,5", "1x", "''"}) {
        const std::string call = std::string(each.command) + " " + option + "=" + value;
        const Outcome outcome = run_program(folder / "", call, "timeout 20");
        EXPECT_EQ(outcome.code, 2) << call << "\n" << outcome.output << outcome.errors;
        EXPECT_TRUE(contains(outcome.errors, option)) << call;
      }
  }
  EXPECT_EQ(folder.file_count(), 0);
}

TEST(NumbersOfEveryCommand, OfDataAndMethodsToo) {
  const ScratchFolder folder;
  for (const char* call : {"generate braggnn --samples 4 --out a.h5 --set photons=inf",
                           "generate braggnn --samples 4 --out a.h5 --set margin=nan",
                           "train unet-64 --set width=nan", "train uno --set dropout=inf"}) {
    const Outcome outcome = run_program(folder / "", call, "timeout 20");
    EXPECT_EQ(outcome.code, 2) << call << "\n" << outcome.output << outcome.errors;
  }
}

}  // namespace
}  // namespace superstep
