// Models that machines are asked for: they lower and fit, or are refused with reasons; and the prediction and
// the lowered program agree on which, and roughly on time and memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/machine/predict.h"
#include "superstep/target/ipu/lower/prepare.h"
#include "superstep/target/ipu/lower/timed.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"

namespace superstep {
namespace {

graph::Graph graph_of(const std::string& name, const std::vector<std::string>& options, std::int64_t batch,
                      bool training) {
  const workload::Workload& workload = workload::find_workload(name);
  graph::Graph graph = workload::build_model(workload, batch, options);
  return training ? transform::make_training_step(graph, workload.training.loss, workload.training.optimizer)
                  : graph;
}

machine::Prediction predicted(const char* machine, const graph::Graph& graph, std::int64_t batch,
                              const char* precision = "f32") {
  return machine::predict(
      machine::find_machine(machine), graph,
      {.precision = machine::precision_from_name(precision), .micro_batch = batch, .pipeline = {}});
}

// A micro-batch that the machines hold, and one that they do not.
struct FitCase {
  const char* model;
  bool training;
  std::int64_t fits, too_large;  // 0: not asked, its plans take long to search
};

void PrintTo(const FitCase& test, std::ostream* out) {
  *out << test.model << (test.training ? " train" : " infer");
}

class Fits : public ::testing::TestWithParam<FitCase> {};

TEST_P(Fits, OrIsRefusedWithReasons) {
  const FitCase& test = GetParam();
  for (const char* machine : {"gc200", "bow"}) {
    const machine::Prediction small =
        predicted(machine, graph_of(test.model, {}, test.fits, test.training), test.fits, "16.16");
    ASSERT_TRUE(small.fits) << machine;
    EXPECT_TRUE(small.unsupported.empty());
    const machine::Memory& memory = small.stages[0].memory;
    EXPECT_GT(memory.fullest_tile, 0);
    EXPECT_LT(memory.fullest_tile, memory.tile_limit);
    if (test.too_large == 0) continue;
    const machine::Prediction large =
        predicted(machine, graph_of(test.model, {}, test.too_large, test.training), test.too_large, "16.16");
    EXPECT_FALSE(large.fits) << machine;
    EXPECT_GT(large.stages[0].memory.fullest_tile, large.stages[0].memory.tile_limit);
    EXPECT_FALSE(large.stages[0].memory.largest.empty());
    EXPECT_FALSE(large.stages[0].memory.fullest.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Fits,
    ::testing::Values(FitCase{"braggnn", false, 512, 0}, FitCase{"braggnn", true, 512, 0},
                      FitCase{"ptychonn-64", false, 8, 0}, FitCase{"ptychonn-64", true, 4, 0},
                      FitCase{"unet-256", false, 1, 0}, FitCase{"unet-256", true, 1, 0},
                      FitCase{"resnet50", false, 4, 0}, FitCase{"resnet50", true, 2, 0},
                      FitCase{"bert-small", false, 8, 0}, FitCase{"bert-small", true, 8, 1024}));

// The lowered program beside the prediction, on models that lower in a moment.
struct LoweredCase {
  const char* model;
  std::vector<std::string> options;
  bool training;
};

void PrintTo(const LoweredCase& test, std::ostream* out) {
  *out << test.model << (test.training ? " train" : " infer");
}

class Lowered : public ::testing::TestWithParam<LoweredCase> {};

TEST_P(Lowered, IsWhatIsPredictedWithinAFactor) {
  const LoweredCase& test = GetParam();
  const graph::Graph graph = graph_of(test.model, test.options, 1, test.training);
  const machine::Prediction prediction = predicted("gc200", graph, 1);
  const bsp::Profile profile = target::ipu::timed_profile(target::ipu::prepare_for_tiles(graph), "gc200");
  EXPECT_EQ(prediction.fits, profile.compilation.too_full.empty()) << profile.compilation.too_full;
  std::uint64_t fullest = 0;
  for (const bsp::TileMemory& tile : profile.compilation.tiles)
    fullest = std::max(fullest, tile.including_gaps());
  const double memory = static_cast<double>(fullest) / prediction.stages[0].memory.fullest_tile;
  const double time = profile.compilation.device.seconds(static_cast<double>(profile.total_cycles())) /
                      prediction.step_seconds;
  EXPECT_GT(memory, 0.5);
  EXPECT_LT(memory, 3.2);
  EXPECT_GT(time, 0.8);
  EXPECT_LT(time, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Lowered,
    ::testing::Values(LoweredCase{"braggnn", {}, false}, LoweredCase{"braggnn", {}, true},
                      LoweredCase{"ptychonn-64", {}, false}, LoweredCase{"bert-small", {"layers=1"}, false},
                      LoweredCase{"bert-small", {"layers=1"}, true}, LoweredCase{"unet-64", {}, false},
                      LoweredCase{"unet-64", {}, true},
                      LoweredCase{"resnet50", {"size=64", "width=16"}, false}));

}  // namespace
}  // namespace superstep
