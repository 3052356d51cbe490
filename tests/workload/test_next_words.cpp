// What is said of models that tell the next token: losses by hand, and what others reach on the same text.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "superstep/base/thread_pool.h"
#include "superstep/workload/task.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t length = 32, vocabulary = 128;

class NextWords : public ::testing::Test {
 protected:
  NextWords() : pool_(1) {
    const Workload& llama = find_workload("llama");
    task_ = open_task(llama, {.data = {},
                              .samples = 200,
                              .seed = 1,
                              .model_options = {"length=32", "vocabulary=128"},
                              .labels_required = true,
                              .pool = &pool_});
    indices_.resize(20);
    std::iota(indices_.begin(), indices_.end(), task_->training_count());
    tokens_ = Tensor(ElementType::i64, {20, length});
    task_->fill_inputs(indices_, std::span(&tokens_, 1), pool_);
  }

  double metric(const Tensor& scores, const std::string& name) const {
    for (const Metric& each : task_->quality(indices_, std::span(&scores, 1)))
      if (each.name == name) return each.value;
    ADD_FAILURE() << "no metric " << name;
    return 0;
  }

  ThreadPool pool_;
  std::unique_ptr<Task> task_;
  std::vector<std::int64_t> indices_;
  Tensor tokens_;
};

// Whoever knows nothing says all tokens alike; whoever sees the next token says it.
TEST_F(NextWords, LossesByHand) {
  Tensor scores(ElementType::f32, {20, length, vocabulary});
  EXPECT_NEAR(metric(scores, "perplexity"), vocabulary, 1e-3);
  EXPECT_NEAR(metric(scores, "token_loss"), std::log(static_cast<double>(vocabulary)), 1e-6);
  for (std::int64_t row = 0; row < 20; ++row)
    for (std::int64_t i = 0; i + 1 < length; ++i) {
      const auto next = static_cast<std::int64_t>(tokens_.at(row * length + i + 1));
      scores.set((row * length + i) * vocabulary + next, 3);
    }
  const double other = std::log(std::exp(3.0) + vocabulary - 1) - 3;
  EXPECT_NEAR(metric(scores, "token_loss"), other, 1e-5);
  EXPECT_EQ(metric(scores, "token_accuracy"), 1);
  // One place late it is no longer right: the control.
  Tensor late(ElementType::f32, {20, length, vocabulary});
  for (std::int64_t row = 0; row < 20; ++row)
    for (std::int64_t i = 0; i < length; ++i)
      late.set((row * length + i) * vocabulary + static_cast<std::int64_t>(tokens_.at(row * length + i)), 3);
  EXPECT_GT(metric(late, "token_loss"), 4);
}

// The grammar's own probabilities are ahead of counts of three, these of frequencies.
TEST_F(NextWords, OthersAreInOrder) {
  const References others = task_->references(indices_, pool_);
  ASSERT_TRUE(others.floor && others.conventional && others.limit && others.target);
  EXPECT_LT(others.limit->value, *others.target);
  EXPECT_LT(*others.target, others.floor->value);
  EXPECT_LT(others.limit->value, others.conventional->value);
  EXPECT_LT(others.conventional->value, others.floor->value);
  const Tensor scores(ElementType::f32, {20, length, vocabulary});
  EXPECT_NEAR(metric(scores, "perplexity_bound"), others.limit->value, 1e-4 * others.limit->value);
}

}  // namespace
}  // namespace superstep::workload
