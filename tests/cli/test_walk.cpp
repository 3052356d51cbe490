// The whole way with one name: data are generated, the conventional method and a short training take the file
// as it is, the model is served on it, and what it reached is said in words. With default files: nothing is
// told the sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

struct Walk {
  std::string workload;
  int samples, batch;
  bool report;  // its default page takes moments, not minutes
};
void PrintTo(const Walk& walk, std::ostream* out) { *out << walk.workload; }

class WholeWay : public ::testing::TestWithParam<Walk> {
 protected:
  std::string run(const std::string& arguments) {
    const Outcome outcome = run_program(folder_ / "", arguments + " --threads 2");
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.output << outcome.errors;
    return outcome.output;
  }
  ScratchFolder folder_;
};

TEST_P(WholeWay, TakesTheFilesOfItsOwnGenerator) {
  const auto& [name, samples, batch, report] = GetParam();
  run("generate " + name + " --samples " + std::to_string(samples) + " --out data.h5");
  ASSERT_FALSE(HasFailure());
  run("baseline " + name + " --input data.h5 --output method.h5");
  const std::string trained = run("train " + name + " --data data.h5 --steps 2 --batch " +
                                  std::to_string(batch) + " --out run --json train.json");
  const std::string served =
      run("infer " + name + " --weights run --input data.h5 --samples 8 --batch 8 --output out.h5");
  ASSERT_FALSE(HasFailure());
  EXPECT_NE(served.find("written to out.h5"), std::string::npos);
  // What it is held against, in words, and the same for programs.
  EXPECT_NE(trained.find("is better"), std::string::npos) << trained;
  EXPECT_NE(trained.find("verdict: "), std::string::npos) << trained;
  const auto kept = nlohmann::json::parse(content_of(folder_ / "run/quality.json"));
  EXPECT_FALSE(kept.at("verdict").get<std::string>().empty());
  EXPECT_TRUE(kept.at("reached").is_number());
  if (report) run("report --run run --out page");
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, WholeWay,
    ::testing::Values(Walk{"braggnn", 400, 64, false}, Walk{"uno", 200, 32, false},
                      Walk{"polymer-gcn", 60, 2, false}, Walk{"schnet", 30, 2, false},
                      Walk{"yieldgnn", 40, 2, false}, Walk{"unet-64", 108, 8, false},
                      Walk{"cifar10-cnn", 300, 64, false}, Walk{"ptychonn-64", 40, 8, false},
                      Walk{"ptychonn-128", 24, 8, false}, Walk{"cookienetae", 40, 8, false},
                      Walk{"pca-compress-128", 90, 8, false}, Walk{"sobel-800", 16, 4, false},
                      Walk{"image-autoencoder", 300, 8, false}, Walk{"conductivity", 20, 4, false},
                      Walk{"mobilenet-v3-small", 40, 8, false}, Walk{"bert-small", 200, 16, false},
                      Walk{"lstm", 200, 32, true}, Walk{"mlp", 300, 32, true}),
    [](const auto& each) {
      std::string name = each.param.workload;
      std::ranges::replace(name, '-', '_');
      return name;
    });

// Those without a model to train: data and method.
class DataAndMethod : public WholeWay {};

TEST_P(DataAndMethod, TakesTheFilesOfItsOwnGenerator) {
  run("generate " + GetParam().workload + " --samples " + std::to_string(GetParam().samples) +
      " --out data.h5");
  ASSERT_FALSE(HasFailure());
  run("baseline " + GetParam().workload + " --input data.h5");
}

INSTANTIATE_TEST_SUITE_P(Workloads, DataAndMethod,
                         ::testing::Values(Walk{"bert-large", 60, 0, false},
                                           Walk{"efficientnet-b0", 40, 0, false}),
                         [](const auto& each) {
                           std::string name = each.param.workload;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// The table of qualities: what is there is not made again, and what was asked otherwise is.
TEST(QualityTable, IsMadeOnceAndGoesOn) {
  const ScratchFolder folder;
  const std::string build = std::filesystem::path(SUPERSTEP_PROGRAM).parent_path().string();
  const auto call = [&](const std::string& more) {
    const std::string command = "SUPERSTEP_HOME='" + (folder / "home").string() +
                                "' " SUPERSTEP_SOURCE "/tools/quality --build '" + build + "' --out '" +
                                (folder / "runs").string() + "' --workload mlp " + more + " >'" +
                                (folder / "out.txt").string() + "' 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << content_of(folder / "out.txt");
    return content_of(folder / "out.txt");
  };
  const auto trainings = [](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(" train mlp --seed", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(trainings(call("--seeds 1 --table")), 0u);
  EXPECT_EQ(trainings(call("--seeds 1")), 1u);
  const std::string both = call("--seeds 1,2");
  EXPECT_EQ(trainings(both), 1u) << both;
  EXPECT_NE(both.find("| `train mlp"), std::string::npos) << both;
  EXPECT_NE(both.find("ridge regression"), std::string::npos) << both;
  EXPECT_NE(both.find(" of 2 |"), std::string::npos) << both;
  const auto kept = nlohmann::json::parse(content_of(folder / "runs/quality.json"));
  EXPECT_EQ(kept.at("mlp").size(), 2u);
  const std::string served = call("--precisions --samples 64");
  EXPECT_EQ(trainings(served), 0u) << served;
  EXPECT_NE(served.find("| `mlp` | rmse | "), std::string::npos) << served;
  for (const char* precision : {" bf16 ", " f16 ", " int8 "})
    EXPECT_NE(served.find(std::string("--precision") + precision), std::string::npos) << served;
  // A run that another command line made is not passed off as this one's.
  std::ofstream(folder / "runs/mlp-1.txt") << "--epochs 1";
  EXPECT_EQ(trainings(call("--seeds 1")), 1u);
}

}  // namespace
}  // namespace superstep
