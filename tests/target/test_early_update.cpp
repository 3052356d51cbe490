// Large parameters of a batch that runs as one micro-batch: updated in the middle of the backward pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/watch.h"
#include "superstep/target/target.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/training/training_step.h"
#include "tests/contains.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using test::expect_close;
using test::Runner;

// The states of an executable as they were.
class States {
 public:
  explicit States(const target::Executable& executable) {
    for (const std::string& name : executable.state_names()) values_.push_back(executable.state(name));
  }
  std::size_t count() const { return values_.size(); }
  // How many are others now.
  std::size_t changed(const target::Executable& executable) const {
    std::size_t others = 0, i = 0;
    for (const std::string& name : executable.state_names()) {
      const Tensor now = executable.state(name);
      others += std::memcmp(now.bytes(), values_[i].bytes(), now.byte_count()) != 0 ? 1 : 0;
      ++i;
    }
    return others;
  }

 private:
  std::vector<Tensor> values_;
};

constexpr std::int64_t width = 260;  // a square of it is large enough for an update of its own

// One matrix in two places, read again in the backward pass of both; one on the left of a product, whose
// gradient is there before it is read for the last time; a convolution and a small layer behind them.
graph::Graph tied(std::int64_t batch) {
  graph::Graph graph("tied");
  op::Builder b(graph);
  test::Layers layers(b, 21);
  const op::Var w = layers.parameter("tied", {width, width}, width);
  op::Var y = op::tanh(op::matmul(b.input("x", ElementType::f32, {batch, width}), w));
  y = op::tanh(op::matmul(y, w));
  const op::Var left = layers.parameter("left", {width, width}, width);
  y = op::tanh(op::transpose(op::matmul(left, op::transpose(y, {1, 0})), {1, 0}));
  y = op::relu(layers.conv(op::reshape(y, {batch, 65, 2, 2}), "conv", 128, 3, {.pads = {1, 1, 1, 1}}));
  b.output("y", layers.dense(op::flatten(y), "small", 3));
  b.output("weights", w);
  return graph;
}

// The matrix is an output of the step where `outputs` says so: then its old values are wanted to the end.
target::GraphAtBatch training(bool outputs, transform::OptimizerKind kind) {
  return [=](std::int64_t batch) {
    transform::OptimizerSpec optimizer{.kind = kind};
    if (kind == transform::OptimizerKind::sgd) optimizer.momentum = 0.9;
    return transform::make_training_step(tied(batch), {{transform::LossTerm{.output = "y"}}}, optimizer,
                                         {.model_outputs = outputs});
  };
}

TEST(EarlyUpdate, StepsAsTheReferenceDoes) {
  for (const bool outputs : {false, true})
    for (const int threads : {1, 2}) {
      const auto step = training(outputs, transform::OptimizerKind::sgd);
      Runner cpu("cpu", step, {.batch = 4, .micro_batch = 4, .threads = threads});
      Runner reference("reference", step, {.batch = 4});
      // The convolution, the tied matrix, whose gradient is a sum, and in one step with its gradient the
      // left.
      EXPECT_EQ(cpu.count("superstep.Sgd"), outputs ? 1u : 2u);
      EXPECT_EQ(cpu.count("Gemm+superstep.Sgd"), 1u);
      for (int i = 0; i < 3; ++i) {
        cpu.run();
        reference.run();
        for (std::size_t k = 0; k < cpu.outputs.size(); ++k)
          expect_close(cpu.outputs[k], reference.outputs[k], 1e-4, "output " + std::to_string(k));
      }
      for (const std::string& name : cpu.executable->state_names())
        expect_close(cpu.executable->state(name), reference.executable->state(name), 1e-3, name);
    }
}

// With nobody: it only keeps the update at the end.
class Nobody : public target::Exchange {
 public:
  std::size_t range_values() const override { return 1 << 16; }
  std::span<float> open(std::size_t values, std::vector<target::ValueRange>) override {
    memory_.assign(values + 16, 0);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return std::span(memory_).subspan((64 - address % 64) % 64 / sizeof(float), values);
  }
  void begin() override {}
  void ready(std::size_t) override {}
  void progress() override {}
  void finish() override {}
  void average_over_span(std::span<float>) override {}

 private:
  std::vector<float> memory_;
};

TEST(EarlyUpdate, GivesTheBitsOfAnUpdateAtTheEnd) {
  const auto step = training(false, transform::OptimizerKind::adam);
  Runner early("cpu", step, {.batch = 4, .micro_batch = 4});
  Nobody nobody;
  Runner late("cpu", step, {.batch = 4, .micro_batch = 4, .parts = {.exchange = &nobody}});
  for (int i = 0; i < 2; ++i) {
    early.run();
    late.run();
  }
  for (const std::string& name : early.executable->state_names()) {
    const Tensor a = early.executable->state(name), b = late.executable->state(name);
    EXPECT_EQ(std::memcmp(a.bytes(), b.bytes(), a.byte_count()), 0) << name;
  }
}

// In bf16 products read what parameters are rounded to, packed where they read it: before the update.
TEST(EarlyUpdate, WaitsForRoundedReaders) {
  const auto step = [](std::int64_t batch) {
    graph::Graph graph("chain");
    op::Builder b(graph);
    test::Layers layers(b, 3);
    op::Var y = b.input("x", ElementType::f32, {batch, width});
    for (const char* name : {"first", "second", "third"}) y = op::tanh(layers.dense(y, name, width));
    b.output("y", y);
    return transform::make_training_step(transform::autocast(graph, ElementType::bf16),
                                         {{transform::LossTerm{.output = "y"}}}, {});
  };
  for (const std::int64_t batch : {4, 32}) {
    const Runner runner("cpu", step, {.batch = batch, .micro_batch = batch});
    const auto steps = runner.executable->summary().steps;
    std::size_t reader = 0, update = 0;  // of the second layer's weights
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].node == "d(second)" && !contains(steps[i].op, "superstep.")) reader = i;
      if (steps[i].node == "update(second.weight)") update = i;
    }
    ASSERT_GT(update, 0u);
    EXPECT_LT(reader, update) << batch;
  }
}

TEST(EarlyUpdate, KeepsNoGradientOfALargeParameter) {
  const auto step = training(false, transform::OptimizerKind::adam);
  const auto gradients = [&](std::int64_t micro_batch) {
    return Runner("cpu", step, {.batch = 4, .micro_batch = micro_batch}).executable->summary().gradient_bytes;
  };
  const std::size_t matrix = width * width * sizeof(float);
  EXPECT_LT(gradients(4), matrix);
  EXPECT_GT(gradients(2), matrix);  // summed over micro-batches
}

TEST(EarlyUpdate, WorkingMemoryCanBeGivenBackBetweenRuns) {
  const auto step = training(false, transform::OptimizerKind::adam);
  for (const std::int64_t micro_batch : {1, 4}) {
    Runner kept("cpu", step, {.batch = 4, .micro_batch = micro_batch, .threads = 2});
    Runner released("cpu", step, {.batch = 4, .micro_batch = micro_batch, .threads = 2});
    for (int i = 0; i < 2; ++i) {
      kept.run();
      released.run();
      released.executable->release_working_memory();
    }
    for (const std::string& name : kept.executable->state_names()) {
      const Tensor a = kept.executable->state(name), b = released.executable->state_in_place(name);
      EXPECT_EQ(std::memcmp(a.bytes(), b.bytes(), a.byte_count()), 0) << name;
    }
  }
}

// The user asks to stop at the `when`-th time that the program listens, and goes on asking.
class User {
 public:
  explicit User(int when) {
    set_interrupt_check([this, when] { return ++listened_ > when; });
  }
  ~User() { set_interrupt_check(nullptr); }
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  int listened() const { return listened_; }

 private:
  std::atomic<int> listened_{0};
};

// A run is given up only while no state has changed: the last whole step can be saved.
TEST(EarlyUpdate, ARunThatIsInterruptedChangesAllStatesOrNone) {
  const auto step = training(false, transform::OptimizerKind::adam);
  Runner runner("cpu", step, {.batch = 4, .micro_batch = 4});
  runner.run();
  int given_up = 0, ended = 0;
  bool heard = true;
  for (int when = 0; heard; ++when) {
    const States before(*runner.executable);
    bool whole = true;
    {
      const User user(when);
      try {
        runner.run();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::interrupted);
        whole = false;
      }
      heard = user.listened() > when;
    }
    (whole ? ended : given_up) += 1;
    EXPECT_EQ(before.changed(*runner.executable), whole ? before.count() : 0u) << "asked at " << when;
    ASSERT_LT(when, 10'000);
  }
  EXPECT_GT(given_up, 1);
  EXPECT_GT(ended, 1);  // the last of them was asked after its end alone
}

}  // namespace
}  // namespace superstep
