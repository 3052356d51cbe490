// What feeds the loop: orders of epochs, batches made ahead, learning rates, goals, validation.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/run/train/feeder.h"
#include "superstep/run/train/schedule.h"
#include "superstep/run/train/until.h"
#include "superstep/run/train/validation.h"
#include "tests/contains.h"

namespace superstep::run {
namespace {

// Samples are their own numbers.
class Counting : public Task {
 public:
  explicit Counting(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override { return size_; }
  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    while (hold) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (fails) throw Error(ErrorCode::bad_file, "sample 3 is damaged");
    for (std::size_t i = 0; i < indices.size(); ++i)
      tensors[0].set(
          static_cast<std::int64_t>(i),
          static_cast<double>(indices[i]) + (augment ? 1000.0 * static_cast<double>(epoch + 1) : 0));
  }
  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }
  std::vector<Metric> quality(std::span<const std::int64_t>, std::span<const Tensor>) const override {
    return {};
  }
  nlohmann::json describe() const override { return {}; }
  std::atomic<bool> hold{false}, fails{false};

 private:
  std::int64_t size_;
};

std::vector<Tensor> prototypes(std::int64_t rows) {
  std::vector<Tensor> tensors;
  tensors.emplace_back(ElementType::f32, Shape{rows});
  return tensors;
}

std::vector<int> numbers(const std::vector<Tensor>& batch) {
  std::vector<int> values;
  for (std::int64_t i = 0; i < batch[0].element_count(); ++i)
    values.push_back(static_cast<int>(batch[0].at(i)));
  return values;
}

TEST(EpochOrder, IsAPermutationOfItsOwn) {
  auto order = epoch_order(100, 7, 3);
  EXPECT_EQ(order, epoch_order(100, 7, 3));
  EXPECT_NE(order, epoch_order(100, 7, 4));
  EXPECT_NE(order, epoch_order(100, 8, 3));
  std::ranges::sort(order);
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(FeederTest, GivesTheOrderAndDropsTheIncompleteBatch) {
  const Counting task(10);
  Feeder feeder(task, prototypes(4), 4, 1, false, {});
  EXPECT_EQ(feeder.batches_an_epoch(), 2);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto order = epoch_order(10, 1, epoch);
    for (std::size_t batch = 0; batch < 2; ++batch) {
      const auto got = numbers(feeder.next());
      for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(got[i], order[batch * 4 + i]) << epoch << ' ' << batch;
    }
  }
}

TEST(FeederTest, BegunLaterGoesOnWhereItWouldBe) {
  const Counting task(40);
  Feeder whole(task, prototypes(4), 4, 9, true, {});
  for (int i = 0; i < 13; ++i) whole.next();  // ten an epoch
  Feeder later(task, prototypes(4), 4, 9, true, {1, 3});
  for (int i = 0; i < 15; ++i) EXPECT_EQ(numbers(later.next()), numbers(whole.next())) << i;
}

TEST(FeederTest, PartsTogetherAreTheBatch) {
  const Counting task(24);
  Feeder whole(task, prototypes(6), 6, 2, false, {});
  Feeder first(task, prototypes(2), 6, 2, false, {}, {0, 3}),
      second(task, prototypes(2), 6, 2, false, {}, {1, 3}),
      third(task, prototypes(2), 6, 2, false, {}, {2, 3});
  for (int i = 0; i < 6; ++i) {
    std::vector<int> joined;
    for (Feeder* part : {&first, &second, &third})
      for (const int value : numbers(part->next())) joined.push_back(value);
    EXPECT_EQ(joined, numbers(whole.next()));
  }
}

TEST(FeederTest, RethrowsWhatWentWrongAndHearsAStop) {
  Counting task(8);
  task.fails = true;
  Feeder failing(task, prototypes(4), 4, 1, false, {});
  EXPECT_THROW(failing.next(), Error);
  Counting slow(8);
  slow.hold = true;
  {
    Feeder waiting(slow, prototypes(4), 4, 1, false, {});
    request_interrupt();
    try {
      waiting.next();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::interrupted);
    }
    clear_interrupt();
    slow.hold = false;
  }
}

TEST(Schedules, WarmUpThenHalfACosine) {
  const Schedule cosine{.kind = Schedule::Kind::cosine, .peak = 1, .final_share = 0.1, .warm_up_share = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 0, 100), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 9, 100), 1);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 10, 100), 1);
  EXPECT_NEAR(learning_rate(cosine, 55, 100), 0.55, 1e-12);  // half way down
  EXPECT_NEAR(learning_rate(cosine, 100, 100), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(cosine, 5000, 100), 0.1, 1e-12) << "and stays there";
  for (int step = 11; step < 100; ++step)
    EXPECT_LT(learning_rate(cosine, step, 100), learning_rate(cosine, step - 1, 100)) << step;
  const Schedule constant{.kind = Schedule::Kind::constant, .peak = 0.3, .warm_up_share = 0};
  for (const int step : {0, 1, 99, 1000}) EXPECT_EQ(learning_rate(constant, step, 100), 0.3);
  EXPECT_EQ(learning_rate(constant, 0, 0), 0.3);
}

TEST(UntilTest, TakesMetricAndFiniteValue) {
  EXPECT_EQ(parse_until("rmse=0.1"), (Until{"rmse", 0.1}));
  EXPECT_EQ(parse_until("r2=-1e-3"), (Until{"r2", -1e-3}));
  for (const char* text :
       {"", "rmse", "=1", "rmse=", "rmse=0,5", "rmse=nan", "rmse=inf", "rmse=1x", "rmse= 1", "rmse=1=2"})
    EXPECT_THROW(parse_until(text), Error) << text;
}

TEST(UntilTest, KnowsMetricsAndTheirDirections) {
  const auto& uno = workload::find_workload("uno");
  EXPECT_NO_THROW(check_until({"r2", 0.5}, uno));
  EXPECT_EQ(to_string({"r2", 0.5}, uno), "r2 >= 0.5");
  EXPECT_EQ(to_string({"mse", 0.5}, uno), "mse <= 0.5");
  const auto quality = [](double r2) { return std::vector<Metric>{{.name = "r2", .value = r2, .unit = ""}}; };
  EXPECT_FALSE(reaches({"r2", 0.5}, uno, quality(-188)));
  EXPECT_TRUE(reaches({"r2", 0.5}, uno, quality(0.5)));
  EXPECT_FALSE(reaches({"r2", 0.5}, uno, quality(std::nan(""))));
  EXPECT_FALSE(reaches({"mse", 0.5}, uno, quality(0.9))) << "not measured";
  try {
    check_until({"r", 1}, uno);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "its metrics are r2, mse, mae"));
  }
}

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

}  // namespace
}  // namespace superstep::run
