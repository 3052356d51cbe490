// The quality of a model in training: on which samples, and that looking changes nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/validation.h"

namespace superstep::run {
namespace {

TEST(ValidationTest, LooksAtTheSamplesAfterThoseOfTraining) {
  const Model model({.workload = "mlp", .batch = 64});
  ThreadPool pool(2);
  const auto task = model.open_task(
      {.data = {}, .samples = 400, .seed = 1, .model_options = {}, .labels_required = true, .pool = &pool});
  const target::Target& target = target::find_target("cpu");
  const auto trained = target.compile(model.training_step(&target), {.batch = 64, .threads = 2});
  Validation validation(target, model, *task, pool, 2);
  const auto quick = validation.quality(*trained, 10), all = validation.quality(*trained, task->size());
  ASSERT_EQ(quick.size(), all.size());
  EXPECT_EQ(all[0].name, "rmse");
  EXPECT_NE(quick[0].value, all[0].value) << "ten samples are not eighty";
  EXPECT_EQ(validation.quality(*trained, task->size())[0].value, all[0].value);
  request_interrupt();
  EXPECT_THROW(validation.quality(*trained, task->size()), Error);
  clear_interrupt();
  EXPECT_EQ(validation.quality(*trained, task->size())[0].value, all[0].value) << "and can be done again";
}

TEST(ValidationTest, LooksAtAsManySamplesAsAreAskedFor) {
  // Nobody says: at most 10,000, no more than were trained on, and a batch of them in any case.
  EXPECT_EQ(samples_to_validate("", 1'000'000, 1'000'000'000), 10'000);
  EXPECT_EQ(samples_to_validate("", 1'000'000, 2000), 2000);
  EXPECT_EQ(samples_to_validate("", 1'000'000, 2), 256);
  EXPECT_EQ(samples_to_validate("", 80, 2), 80);
  EXPECT_EQ(samples_to_validate("all", 1'000'000, 2), 1'000'000);
  EXPECT_EQ(samples_to_validate("300", 1'000'000, 2), 300);
  EXPECT_EQ(samples_to_validate("300", 80, 2), 80);
  EXPECT_EQ(samples_to_validate("1", 80, 2), 1);
  EXPECT_EQ(samples_to_validate("0.1", 1005, 2), 101);
  EXPECT_EQ(samples_to_validate("10%", 1005, 2), 101);
  for (const char* bad : {"0", "-1", "1.5", "x", "10%x", "nan", "200%", "all of them"})
    EXPECT_THROW(samples_to_validate(bad, 80, 2), Error) << bad;
}

std::unique_ptr<Task> task_of(const Model& model, std::int64_t samples, ThreadPool& pool) {
  return model.open_task({.data = {},
                          .samples = samples,
                          .seed = 1,
                          .model_options = model.settings().model_options,
                          .labels_required = true,
                          .pool = &pool});
}

std::unique_ptr<target::Executable> training_of(const Model& model, int threads) {
  const target::Target& target = target::find_target("cpu");
  return target.compile(model.training_step(&target), {.batch = model.settings().batch, .threads = threads});
}

void train_steps(target::Executable& trained, const Task& task, int steps) {
  std::vector<Tensor> inputs, outputs;
  for (const auto& port : trained.inputs()) inputs.emplace_back(port.type.element, port.type.shape);
  outputs.emplace_back(trained.outputs()[0].type.element, trained.outputs()[0].type.shape);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(inputs[0].shape()[0]));
  std::iota(indices.begin(), indices.end(), 0);
  for (int step = 0; step < steps; ++step) {
    task.fill(indices, 0, false, std::span(inputs).first(inputs.size() - 1));
    inputs.back() = Tensor::scalar(0.01F);
    trained.run(inputs, outputs);
  }
}

// 320 validation samples: a batch of 256 and a rest. The reference evaluates them a sample at a time.
TEST(ValidationTest, IsTheQualityOfTheModelOnEverySample) {
  const Model model({.workload = "mlp", .batch = 64});
  ThreadPool pool(2);
  const auto task = task_of(model, 1600, pool);
  const auto trained = training_of(model, 2);
  train_steps(*trained, *task, 3);
  const target::Target& cpu = target::find_target("cpu");
  Validation validation(cpu, model, *task, pool, 2);
  const std::vector<Metric> found = validation.quality(*trained, task->size());
  Evaluator alone(target::find_target("reference"), model.inference(), {.batch = 1});
  alone.set_parameters(states_of(*trained), "here");
  std::vector<std::int64_t> indices(320);
  std::iota(indices.begin(), indices.end(), 1280);
  const std::vector<Metric> expected = task->quality(indices, alone.predict(*task, indices, pool));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i].value, expected[i].value, 1e-5);
  EXPECT_GT(found[0].value, 0.01) << "an error that could be seen";
}

// Statistics of normalisation stay those of training, and the working memory that is taken comes back.
TEST(ValidationTest, ChangesNothingOfTheTraining) {
  for (const TrainSettings& settings :
       {TrainSettings{.workload = "mlp", .batch = 32},
        TrainSettings{
            .workload = "unet-64", .model_options = {"size=32", "width=4", "levels=2"}, .batch = 8}}) {
    SCOPED_TRACE(settings.workload);
    const Model model(settings);
    ThreadPool pool(2);
    const auto task = task_of(model, 50, pool);
    const auto looked_at = training_of(model, 2), alone = training_of(model, 2);
    Validation validation(target::find_target("cpu"), model, *task, pool, 2);
    for (int i = 0; i < 3; ++i) {
      train_steps(*looked_at, *task, 2);
      train_steps(*alone, *task, 2);
      EXPECT_FALSE(validation.quality(*looked_at, Validation::quick).empty());
    }
    for (const std::string& name : alone->state_names()) {
      const Tensor a = alone->state(name), b = looked_at->state(name);
      EXPECT_EQ(std::memcmp(a.bytes(), b.bytes(), a.byte_count()), 0) << name;
    }
  }
}

TEST(ValidationTest, OfNoSamplesIsNoQuality) {
  const Model model({.workload = "mlp", .batch = 8});
  ThreadPool pool(1);
  const auto task = task_of(model, 40, pool);
  const auto trained = training_of(model, 1);
  Validation validation(target::find_target("cpu"), model, *task, pool, 1);
  EXPECT_TRUE(validation.quality(*trained, 0).empty());
}

}  // namespace
}  // namespace superstep::run
