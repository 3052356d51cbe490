// Every workload on 2, 3, 4 and 8 ranks, built small, with more ranks than processors: it trains, to the loss
// that one rank has with the same batch.
//
// SUPERSTEP_CASES=1 runs every workload on every number of ranks instead of on one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "superstep/run/ranks/communicator.h"
#include "tests/cli/program.h"
#include "tests/keep_written.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* workload;
  const char* settings;
  // A rank normalises over its own samples, or weighs its own labels: the loss is another one.
  bool same_loss = true;
};

void PrintTo(const Case& given, std::ostream* out) { *out << given.workload; }

bool runs_everything() { return std::getenv("SUPERSTEP_CASES") != nullptr; }

constexpr const char* small_bert =
    "--set layers=1 --set width=16 --set heads=2 --set length=16 --set vocabulary=80";
constexpr const char* small_images = "--set size=32 --set classes=10";

const Case cases[] = {{"braggnn", ""},
                      {"ptychonn-64", "--set window=32"},
                      {"ptychonn-128", "--set window=32"},
                      {"cookienetae", "--set width=2"},
                      {"pca-compress-128", "--set side=32 --set components=16"},
                      {"sobel-800", "--set side=32 --set start=random"},
                      {"image-autoencoder", "--set width=2", false},
                      {"conductivity", "--set side=16 --set width=2", false},
                      {"uno", "--set width=24"},
                      {"unet-64", "--set size=32 --set width=4", false},
                      {"unet-256", "--set size=32 --set width=4", false},
                      {"cifar10-cnn", ""},
                      {"resnet50", "--set size=32 --set classes=10 --set width=8", false},
                      {"efficientnet-b0", small_images, false},
                      {"mobilenet-v3-small", small_images, false},
                      {"bert-small", small_bert, false},
                      {"lstm", "--set steps=7 --set units=32"},
                      {"mlp", ""},
                      {"gravity-wave-drag", "--set levels=21 --set width=24 --set layers=2"},
                      {"rnn-k1", ""}};

class RanksOfTheZoo : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!run::has_ranks() || std::string(MPIRUN).empty())
      GTEST_SKIP() << "built without MPI, or mpirun is not installed";
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    folder_ = fs::temp_directory_path() / ("superstep_ranks_zoo_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    if (folder_.empty()) return;
    keep_written(folder_, "RanksOfTheZoo");
    fs::remove_all(folder_);
  }

  double loss_on(int ranks, int threads) {
    const std::string arguments = "train " + std::string(GetParam().workload) + " " + GetParam().settings +
                                  " --steps 2 --batch 24 --samples 96 --quiet --json loss.json --threads " +
                                  std::to_string(threads);
    const Outcome outcome = run_program(folder_, arguments,
                                        std::string("timeout 120 ") + MPIRUN + " -n " +
                                            std::to_string(ranks) + " --oversubscribe --bind-to none");
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.errors;
    if (outcome.code != 0) return NAN;
    const auto result = nlohmann::json::parse(content_of(folder_ / "loss.json"));
    return result["metrics"]["loss"]["value"].get<double>();
  }

  fs::path folder_;
};

TEST_P(RanksOfTheZoo, TrainTogether) {
  constexpr int counts[] = {2, 3, 4, 8};
  // Another number for each workload.
  const auto* const own = std::ranges::find(cases, std::string_view(GetParam().workload), &Case::workload);
  const auto number = static_cast<std::size_t>(own - std::begin(cases));
  const double alone = loss_on(1, 1);
  for (std::size_t i = 0; i < std::size(counts); ++i) {
    if (!runs_everything() && number % std::size(counts) != i) continue;
    // More threads than groups, too: a rank's part of the batch is small.
    const double together = loss_on(counts[i], i % 2 == 0 ? 1 : 3);
    if (GetParam().same_loss)
      EXPECT_NEAR(together / alone, 1, 2e-3) << counts[i] << " ranks";
    else
      EXPECT_LT(std::abs(std::log(together / alone)), 0.7) << counts[i] << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, RanksOfTheZoo, ::testing::ValuesIn(cases));

}  // namespace
}  // namespace superstep
