// Predictions whose time is the law's of networks: of machines with a file and of those of a data sheet
// alone.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/lab/by_law.h"
#include "superstep/lab/graphs_by_batch.h"
#include "superstep/machine/predict.h"
#include "superstep/machine/rates/network_by_law.h"
#include "superstep/machine/rates/sheet_machine.h"

namespace superstep::machine {
namespace {

struct Asked {
  run::Model model;
  lab::ModelByLaw by_law;
  lab::GraphsByBatch graphs;
  Asked(const std::string& workload, bool training)
      : model({.workload = workload}), by_law(model, training), graphs(model, training) {}

  Prediction on(const std::string& machine, std::int64_t batch, const char* precision = "mixed",
                int accumulate = 1, int replicas = 1) {
    PredictSettings settings;
    settings.precision = precision_from_name(precision);
    settings.micro_batch = batch;
    settings.accumulate = accumulate;
    settings.replicas = replicas;
    return predict(by_law.on(find_machine(machine)), graphs.at(batch), settings);
  }
};

// The law's seconds and interval, of GPUs; machines of other styles keep their models.
TEST(ByLaw, TimesStepsOfGpus) {
  Asked asked("resnet50", true);
  const Prediction h100 = asked.on("h100", 32), ipu = asked.on("gc200", 4, "16.16");
  ASSERT_TRUE(h100.by_law);
  EXPECT_FALSE(ipu.by_law);
  EXPECT_TRUE(h100.by_law->measured_machine);
  EXPECT_NE(h100.step_seconds, h100.by_law->model_seconds);
  EXPECT_NEAR(h100.step.total() / h100.step_seconds, 1, 1e-9);
  EXPECT_LT(h100.shortest_step(), h100.step_seconds);
  EXPECT_GT(h100.longest_step(), h100.step_seconds);
  EXPECT_LE(h100.fed.low, h100.step_seconds_with_data);
}

// A network smaller than any that was measured, a pipeline and a stack of the machine's file are the model's.
TEST(ByLaw, LeavesToTheModelWhatItDoesNotKnow) {
  Asked small("braggnn", true);
  EXPECT_FALSE(small.on("a100-40gb", 512).by_law);
  Asked asked("resnet50", true);
  EXPECT_EQ(asked.by_law.on(find_machine("a100-40gb").driven_by("pytorch-eager")).by_law(), nullptr);
  PredictSettings settings;
  settings.precision = precision_from_name("mixed");
  settings.micro_batch = 4;
  settings.pipeline = {1, 1};
  EXPECT_FALSE(predict(asked.by_law.on(find_machine("h100")), asked.graphs.at(4), settings).by_law);
}

// What nobody needs a truth for.
TEST(ByLaw, GrowsAsItShould) {
  Asked asked("resnet50", true);
  const double once = asked.on("h100", 16).step_seconds;
  EXPECT_NEAR(asked.on("h100", 16, "mixed", 3).step_seconds / once, 3, 1e-9);
  EXPECT_GT(asked.on("h100", 16, "mixed", 1, 8).step_seconds, once);
  EXPECT_LT(asked.on("h100", 32).step_seconds, 2.001 * once);
  EXPECT_GT(asked.on("h100", 32).step_seconds, once);
}

// Every machine that a data sheet makes is asked like any other; a guess of it says so.
TEST(ByLaw, DataSheetsMakeMachines) {
  Asked asked("resnet50", false);
  int made = 0;
  for (const auto& [id, sheet] : sheets()) {
    if (!can_be_made(sheet.facts)) continue;
    ++made;
    const Machine machine = machine_of(sheet);
    EXPECT_EQ(machine.constant("memory_rate").kind, Kind::datasheet) << id;
    EXPECT_EQ(machine.constant("matrix_efficiency").kind, Kind::guess) << id;
    EXPECT_EQ(find_machine(id).id(), id);
    const Prediction prediction = asked.on(id, 8, "f16");
    EXPECT_TRUE(prediction.by_law && std::isfinite(prediction.step_seconds) && prediction.step_seconds > 0)
        << id;
  }
  EXPECT_GT(made, 80);
  EXPECT_THROW(find_machine("speedai240"), Error) << "too little for its style";
}

// What machines share is found once, and is what each would have found alone.
TEST(ByLaw, SharedPredictionsAreThoseOfEachMachine) {
  Asked asked("resnet50", true);
  PredictionsByLaw shared;
  PredictSettings settings;
  settings.precision = precision_from_name("mixed");
  settings.micro_batch = 16;
  for (const char* id : {"h100", "t4", "rtx4090", "gc200", "rtx3070"}) {
    settings.precision = precision_from_name(id == std::string("gc200") ? "16.16" : "mixed");
    settings.micro_batch = id == std::string("gc200") ? 4 : 16;
    const Machine machine = asked.by_law.on(find_machine(id));
    const graph::Graph& graph = asked.graphs.at(settings.micro_batch);
    const Prediction one = shared.predict(machine, graph, settings),
                     alone = predict(machine, graph, settings);
    EXPECT_EQ(one.fits, alone.fits) << id;
    EXPECT_DOUBLE_EQ(one.step_seconds, alone.step_seconds) << id;
    EXPECT_DOUBLE_EQ(one.fed.high, alone.fed.high) << id;
    EXPECT_DOUBLE_EQ(one.roofline_seconds, alone.roofline_seconds) << id;
    EXPECT_DOUBLE_EQ(one.border_bytes, alone.border_bytes) << id;
    EXPECT_DOUBLE_EQ(one.stages[0].memory.limit, alone.stages[0].memory.limit) << id;
  }
}

}  // namespace
}  // namespace superstep::machine
