// The perceptron in place of a scheme of gravity waves: it becomes better than a line, and what it counts of
// its data is what its outputs are made of.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "superstep/run/model.h"
#include "superstep/run/train/train.h"
#include "superstep/workload/task.h"
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

TrainSettings small_columns() {
  return {.workload = "gravity-wave-drag",
          .model_options = {"levels=21", "width=64", "layers=2"},
          .samples = 3000,
          .batch = 32,
          .replicas = 1,
          .epochs = 12,
          .seed = 4};
}

TEST(GravityWaveDrag, IsLearntBetterThanALineSaysIt) {
  TrainSettings settings = small_columns();
  const TrainReport trained = train(settings, {});
  std::vector<std::int64_t> unseen(
      static_cast<std::size_t>(trained.data->size() - trained.data->training_count()));
  std::iota(unseen.begin(), unseen.end(), trained.data->training_count());
  ThreadPool pool(1);
  const workload::References others = trained.data->references(unseen, pool);
  EXPECT_GT(metric(trained, "r2"), others.floor->value);
  // The control: without a step of any length there is no skill.
  settings.steps = 1;
  settings.learning_rate = 1e-12;
  EXPECT_LT(metric(train(settings, {}), "r2"), 0.05);
}

TEST(GravityWaveDrag, CountsItsColumnsAndSaysNothingBelowTheLaunch) {
  const ScratchFolder folder;
  TrainSettings settings = small_columns();
  settings.samples = 400;
  settings.steps = 2;
  train(settings, {.out = folder / "run"});
  const auto states = test::newest_checkpoint(folder / "run").states;
  ThreadPool pool(1);
  const Model model(settings);
  const auto task = model.open_task(
      {.samples = 400, .seed = 4, .model_options = model.settings().model_options, .pool = &pool});
  std::vector<std::int64_t> known(static_cast<std::size_t>(task->training_count()));
  std::iota(known.begin(), known.end(), 0);
  const auto rows = task->training_count();
  std::vector<Tensor> batch;
  for (const std::int64_t width : {21, 21, 21, 2, 21, 21, 21, 21})
    batch.emplace_back(ElementType::f32, Shape{rows, width});
  task->fill(known, 0, false, batch);
  for (const std::int64_t k : {0, 9, 20}) {
    double mean = 0, squares = 0;
    for (std::int64_t i = 0; i < rows; ++i) mean += batch[0].at(21 * i + k) / static_cast<double>(rows);
    for (std::int64_t i = 0; i < rows; ++i)
      squares += std::pow(batch[0].at(21 * i + k) - mean, 2) / static_cast<double>(rows);
    EXPECT_NEAR(states.at("counted/u.mean").at(k), mean, 1e-4) << k;
    EXPECT_NEAR(states.at("counted/u.inverse_deviation").at(k) * std::sqrt(squares), 1, 1e-4) << k;
  }
  // Three kilometres a layer, waves from 9 km on.
  for (const char* name : {"drag_u", "drag_v"}) {
    const std::string prefix = std::string("counted/") + name;
    for (std::int64_t k = 0; k < 21; ++k) {
      EXPECT_EQ(states.at(prefix + ".deviation").at(k) > 0, k >= 3) << name << " " << k;
      if (k < 3) {
        EXPECT_EQ(states.at(prefix + ".mean").at(k), 0);
      }
    }
  }
  // A weight a deviation makes one, whatever the column.
  for (const std::size_t weights : {std::size_t{5}, std::size_t{7}})
    for (std::int64_t k = 3; k < 21; ++k) {
      const Tensor& deviation =
          states.at(weights == 5 ? "counted/drag_u.deviation" : "counted/drag_v.deviation");
      EXPECT_NEAR(batch[weights].at(k) * deviation.at(k), 1, 1e-4);
      EXPECT_EQ(batch[weights].at(k), batch[weights].at(21 * (rows - 1) + k));
    }
}

// In training some columns are seen in a mirror along the equator, and then their drag is too.
TEST(GravityWaveDrag, MirrorsColumnsWithTheirDrag) {
  ThreadPool pool(1);
  const auto task =
      workload::open_task(workload::find_workload("gravity-wave-drag"),
                          {.samples = 60, .seed = 2, .model_options = {"levels=21"}, .pool = &pool});
  const auto filled = [&](bool augment) {
    std::vector<Tensor> batch;
    for (const std::int64_t width : {21, 21, 21, 2, 21, 21, 21, 21})
      batch.emplace_back(ElementType::f32, Shape{40, width});
    std::vector<std::int64_t> indices(40);
    std::iota(indices.begin(), indices.end(), 0);
    task->fill(indices, 3, augment, batch);
    return batch;
  };
  const auto plain = filled(false), seen = filled(true);
  int mirrored = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    const double sign = seen[1].at(21 * i) == plain[1].at(21 * i) ? 1 : -1;
    mirrored += sign < 0;
    for (std::int64_t k = 21 * i; k < 21 * (i + 1); ++k) {
      EXPECT_EQ(seen[0].at(k), plain[0].at(k));
      EXPECT_EQ(seen[1].at(k), sign * plain[1].at(k));
      EXPECT_EQ(seen[4].at(k), plain[4].at(k));
      EXPECT_EQ(seen[6].at(k), sign * plain[6].at(k));
      EXPECT_EQ(seen[7].at(k), plain[7].at(k));
    }
  }
  EXPECT_GT(mirrored, 8);
  EXPECT_LT(mirrored, 32);
}

}  // namespace
}  // namespace superstep::run
