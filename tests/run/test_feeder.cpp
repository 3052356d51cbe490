// What feeds the loop: orders of epochs, and batches made ahead.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/run/train/feeder.h"
#include "tests/expect_error.h"

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
    if (fails || fills == fails_after) throw Error(ErrorCode::bad_file, "sample 3 is damaged");
    ++fills;
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
  int fails_after = -1;               // batches; -1: never
  mutable std::atomic<int> fills{0};  // batches that were made

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

// What is not there yet is not waited for, and comes in its turn.
TEST(FeederTest, GivesWhatIsReadyWithoutWaiting) {
  Counting task(8);
  task.hold = true;
  Feeder feeder(task, prototypes(4), 4, 1, false, {});
  EXPECT_TRUE(feeder.next_if_ready().empty());
  task.hold = false;
  const auto order = epoch_order(8, 1, 0);
  const std::vector<int> first(order.begin(), order.begin() + 4), second(order.begin() + 4, order.end());
  EXPECT_EQ(numbers(feeder.next()), first);
  std::vector<Tensor> next;
  while (next.empty()) next = feeder.next_if_ready();
  EXPECT_EQ(numbers(next), second);
}

// An error is told by who waits for the batch.
TEST(FeederTest, LeavesAnErrorToWhoWaits) {
  Counting task(8);
  task.fails = true;
  Feeder feeder(task, prototypes(4), 4, 1, false, {});
  EXPECT_THROW(feeder.next(), Error);
  EXPECT_TRUE(feeder.next_if_ready().empty());
  EXPECT_THROW(feeder.next(), Error);
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

// An order of the whole, however often it is asked for, and no two places are tied to each other.
TEST(EpochOrder, EverySampleComesToEveryPlace) {
  constexpr std::int64_t count = 5;
  constexpr int epochs = 5000;
  std::vector<std::vector<int>> seen(count, std::vector<int>(count, 0));
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto order = epoch_order(count, 3, epoch);
    for (std::size_t place = 0; place < count; ++place) ++seen[place][static_cast<std::size_t>(order[place])];
  }
  // Binomial: a mean of 1000, a standard deviation of 28.3; five of them, 25 times looked at.
  for (const auto& place : seen)
    for (const int times : place) EXPECT_NEAR(times, epochs / count, 142);
}

TEST(EpochOrder, OfNothingAndOfOne) {
  EXPECT_TRUE(epoch_order(0, 1, 0).empty());
  EXPECT_EQ(epoch_order(1, 1, 7), (std::vector<std::int64_t>{0}));
}

// Nobody is left out for good: what an epoch drops is other samples each time.
TEST(FeederTest, AnEpochHasEverySampleAtMostOnce) {
  const Counting task(11);
  Feeder feeder(task, prototypes(4), 4, 3, false, {});
  std::set<int> ever;
  for (int epoch = 0; epoch < 12; ++epoch) {
    std::set<int> here;
    for (std::int64_t batch = 0; batch < feeder.batches_an_epoch(); ++batch)
      for (const int sample : numbers(feeder.next())) EXPECT_TRUE(here.insert(sample).second) << sample;
    EXPECT_EQ(here.size(), 8U);
    ever.insert(here.begin(), here.end());
  }
  EXPECT_EQ(ever.size(), 11U);
}

TEST(FeederTest, TheWholeIsOneBatch) {
  const Counting task(6);
  Feeder feeder(task, prototypes(6), 6, 5, false, {});
  EXPECT_EQ(feeder.batches_an_epoch(), 1);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto order = epoch_order(6, 5, epoch);
    EXPECT_EQ(numbers(feeder.next()), std::vector<int>(order.begin(), order.end()));
  }
}

TEST(FeederTest, ASeedIsAnOrder) {
  const Counting task(32);
  Feeder one(task, prototypes(8), 8, 1, false, {}), again(task, prototypes(8), 8, 1, false, {}),
      other(task, prototypes(8), 8, 2, false, {});
  int different = 0;
  for (int i = 0; i < 9; ++i) {
    const auto batch = numbers(one.next());
    EXPECT_EQ(numbers(again.next()), batch) << i;
    different += numbers(other.next()) != batch;
  }
  EXPECT_EQ(different, 9);
}

// Augmentation is told the epoch, whichever sitting it is made in.
TEST(FeederTest, TellsTheEpoch) {
  const Counting task(4);
  Feeder feeder(task, prototypes(4), 4, 1, true, {5, 0});
  for (int epoch = 5; epoch < 8; ++epoch)
    for (const int value : numbers(feeder.next())) EXPECT_EQ(value / 1000, epoch + 1);
}

// A checkpoint of an epoch's end, and one of a run whose epochs were longer: the next epoch comes.
TEST(FeederTest, BegunBehindTheLastBatchIsTheNextEpoch) {
  const Counting task(10);
  for (const std::int64_t behind : {2, 7}) {
    Feeder feeder(task, prototypes(4), 4, 1, false, {3, behind}),
        next(task, prototypes(4), 4, 1, false, {4, 0});
    EXPECT_EQ(numbers(feeder.next()), numbers(next.next())) << behind;
  }
}

TEST(FeederTest, MakesOnlyAFewAhead) {
  const Counting task(100);
  Feeder feeder(task, prototypes(10), 10, 1, false, {}, {}, {.ahead = 2});
  const auto settled = [&] {  // two are ready, and one more waits for a place
    for (int i = 0; i < 2000 && task.fills < 3; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return task.fills.load();
  };
  EXPECT_EQ(settled(), 3);
  for (int i = 0; i < 4; ++i) feeder.next();
  for (int i = 0; i < 2000 && task.fills < 7; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(task.fills, 7);
}

TEST(FeederTest, CountsTheTimeThatDataKeepOthersWaiting) {
  Counting task(8);
  task.hold = true;
  Feeder feeder(task, prototypes(4), 4, 1, false, {});
  EXPECT_EQ(feeder.seconds_waited(), 0);
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    task.hold = false;
  });
  const Stopwatch watch;
  feeder.next();
  EXPECT_GT(feeder.seconds_waited(), 0);
  EXPECT_LE(feeder.seconds_waited(), watch.seconds());
}

// Whoever makes them: in their order, and a fault in its place.
TEST(FeederTest, AnyNumberOfReadersGivesTheSameBatches) {
  const Counting task(40);
  for (const int readers : {1, 2, 3, 8}) {
    Feeder one(task, prototypes(4), 4, 9, true, {0, 7}),
        many(task, prototypes(4), 4, 9, true, {0, 7}, {}, {.ahead = 2, .readers = readers});
    for (int i = 0; i < 45; ++i) ASSERT_EQ(numbers(many.next()), numbers(one.next())) << readers << ' ' << i;
  }
}

// What was made before something went wrong is handed out first, and the fault stays.
TEST(FeederTest, AFaultComesInItsOwnPlace) {
  Counting task(12);
  task.fails_after = 2;
  Feeder feeder(task, prototypes(4), 4, 1, false, {});
  const auto order = epoch_order(12, 1, 0);
  for (std::size_t batch = 0; batch < 2; ++batch)
    EXPECT_EQ(numbers(feeder.next())[0], order[batch * 4]) << batch;
  for (int again = 0; again < 2; ++again)
    expect_error(ErrorCode::bad_file, {"sample 3 is damaged"}, [&] { feeder.next(); });
}

// Without a batch there is nothing to make: it would look for one for ever.
TEST(FeederTest, RefusesABatchThatIsNeverFull) {
  const Counting task(3);
  expect_error(ErrorCode::invalid_argument, {"the 3 training samples do not fill one batch of 4"},
               [&] { const Feeder feeder(task, prototypes(4), 4, 1, false, {}); });
}

}  // namespace
}  // namespace superstep::run
