// Training by gradients that are estimated in one forward pass: the same whatever divides a batch, written
// down, and with less memory; and the wall model that it is used for.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "superstep/physics/generator.h"
#include "superstep/run/model.h"
#include "superstep/run/train/train_resume.h"
#include "tests/expect_error.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

double metric(const TrainReport& report, const std::string& name) {
  for (const Metric& found : report.metrics)
    if (found.name == name) return found.value;
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

// After three steps of plain descent.
std::map<std::string, Tensor> parameters_after(const std::filesystem::path& folder, std::int64_t micro_batch,
                                               int threads) {
  TrainSettings settings = test::estimated_run();
  settings.optimizer = "sgd";
  settings.learning_rate = 1e-3;
  settings.micro_batch = micro_batch;
  settings.replicas = threads;
  settings.steps = 3;
  train(settings, {.out = folder});
  return test::newest_checkpoint(folder).states;
}

TEST(ForwardTraining, IsTheSameWhateverDividesTheBatch) {
  const ScratchFolder folder;
  const auto whole = parameters_after(folder / "whole", 32, 1),
             parts = parameters_after(folder / "parts", 4, 1),
             threads = parameters_after(folder / "threads", 8, 2);
  double moved = 0;
  const auto again = parameters_after(folder / "again", 32, 1);
  for (const auto& [name, tensor] : whole)
    EXPECT_EQ(std::memcmp(again.at(name).bytes(), tensor.bytes(), tensor.byte_count()), 0) << name;
  for (const auto& [name, tensor] : whole)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      EXPECT_NEAR(parts.at(name).at(i), tensor.at(i), 1e-5) << name;
      EXPECT_NEAR(threads.at(name).at(i), tensor.at(i), 1e-5) << name;
      if (name == "fc2.bias") moved = std::max(moved, std::abs(tensor.at(i)));  // begins at zero
    }
  EXPECT_GT(moved, 1e-5);
}

TEST(ForwardTraining, IsWrittenDownAndCannotChange) {
  const ScratchFolder folder;
  TrainSettings settings = test::estimated_run();
  settings.steps = 1;
  settings.gradient = "forward";
  train(settings, {.out = folder / "run"});
  const TrainSettings kept = train_settings_from_json(RunDirectory::open(folder / "run").config());
  EXPECT_EQ(kept.gradient, "forward:1");
  const std::vector<std::string> given{"--gradient"};
  EXPECT_NO_THROW(refuse_changes(kept, settings, given, "run"));
  settings.gradient = "forward:4";
  expect_error(ErrorCode::invalid_argument, {"begun with 'forward:1', not 'forward:4'"},
               [&] { refuse_changes(kept, settings, given, "run"); });
  settings.gradient = "sideways";
  expect_error(ErrorCode::invalid_argument, {"--gradient sideways: is no way to a gradient"},
               [&] { Model{settings}; });
}

// Four layers of attention: what they compute waits for the backward pass in reverse mode alone.
TEST(ForwardTraining, NeedsLessMemoryForActivations) {
  const auto activations = [](const std::string& gradient) {
    const TrainSettings settings{
        .workload = "bert-small",
        .model_options = {"layers=4", "width=32", "heads=2", "length=32", "vocabulary=80"},
        .samples = 40,
        .batch = 16,
        .micro_batch = 16,
        .steps = 1,
        .gradient = gradient};
    return static_cast<double>(train(settings, {}).plan.activation_bytes);
  };
  EXPECT_LT(activations("forward"), 0.6 * activations("reverse"));
}

// One direction a step: what it was after a step of next to no length, and after the training.
TEST(ForwardTraining, HalvesTheErrorOfTheWallModelAlongOneDirectionAStep) {
  TrainSettings settings{.workload = "wallmodel", .samples = 4096, .epochs = 12, .gradient = "forward:1"};
  const double trained = metric(train(settings, {}), "mse");
  settings.steps = 1;
  settings.learning_rate = 1e-12;
  EXPECT_LT(trained, 0.5 * metric(train(settings, {}), "mse"));
}

// --- the wall model's own data

void generate_points(const std::filesystem::path& path) {
  ThreadPool pool(1);
  const auto& entry = data::find_generator("wallmodel");
  entry.make(Options(entry.options, {}))->write({path, 1, 800, &pool});
}

TEST(WallModel, ReadsTablesAndArraysAlike) {
  const ScratchFolder folder;
  const auto after = [&](const std::string& file) {
    generate_points(folder / file);
    return metric(train({.workload = "wallmodel", .data = folder / file, .epochs = 2}, {}), "mse");
  };
  const double of_arrays = after("points.h5");
  EXPECT_NEAR(after("points.csv"), of_arrays, 1e-3 * of_arrays);
}

TEST(WallModel, ScalesWhatComesInByTheTrainingPoints) {
  const ScratchFolder folder;
  TrainSettings settings = test::estimated_run();
  settings.steps = 2;
  train(settings, {.out = folder / "run"});
  const auto states = test::newest_checkpoint(folder / "run").states;
  const Model model(settings);
  ThreadPool pool(1);
  const auto task =
      model.open_task({.samples = 400, .model_options = model.settings().model_options, .pool = &pool});
  std::vector<std::int64_t> known(static_cast<std::size_t>(task->training_count()));
  for (std::size_t i = 0; i < known.size(); ++i) known[i] = static_cast<std::int64_t>(i);
  Tensor features(ElementType::f32, {task->training_count(), 16});
  task->fill_inputs(known, std::span(&features, 1), pool);
  for (const std::int64_t k : {0, 4, 12, 15}) {
    double low = 1e9, high = -1e9;
    for (std::int64_t i = 0; i < task->training_count(); ++i) {
      const double scaled = (features.at(16 * i + k) - states.at("counted/features.middle").at(k)) *
                            states.at("counted/features.inverse_reach").at(k);
      low = std::min(low, scaled), high = std::max(high, scaled);
    }
    EXPECT_NEAR(low, -1, 1e-4) << k;
    EXPECT_NEAR(high, 1, 1e-4) << k;
  }
}

TEST(WallModel, RefusesDataThatItCannotUse) {
  const ScratchFolder folder;
  generate_points(folder / "points.h5");
  ThreadPool pool(1);
  const auto open = [&](const std::string& file, const std::vector<std::string>& options) {
    return Model({.workload = "wallmodel", .model_options = options})
        .open_task({.data = folder / file, .model_options = options, .pool = &pool});
  };
  expect_error(ErrorCode::bad_file, {"points.h5", "has 16 features per point, the model takes 48"}, [&] {
    open("points.h5", {"level=a", "stencil=3"});
  });
  std::ofstream(folder / "short.csv") << "u,v,w\n1,2,3\n";
  expect_error(ErrorCode::bad_file, {"short.csv", "du_dx"}, [&] { open("short.csv", {}); });
  expect_error(ErrorCode::invalid_argument, {"a column has no neighbors"}, [&] {
    Model({.workload = "wallmodel", .model_options = {"stencil=3"}})
        .open_task({.samples = 10, .model_options = {"stencil=3"}, .pool = &pool});
  });
}

}  // namespace
}  // namespace superstep::run
