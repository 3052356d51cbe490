// Runs that are parts of a larger batch: threads that exchange means as ranks do.
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "superstep/op/rows/normalization.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/cpu/plan/gradient_ranges.h"
#include "superstep/target/target.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/models.h"

namespace superstep::target {
namespace {

using test::random_tensor;

// What all parts share.
struct Table {
  explicit Table(int parts) : values(static_cast<std::size_t>(parts)), barrier(parts) {}
  std::vector<std::span<float>> values;
  std::barrier<> barrier;
};

// Every value becomes its mean over parts, added in their order; counts what it is told.
class TableExchange : public Exchange {
 public:
  TableExchange(Table& table, std::size_t part, std::size_t wanted)
      : table_(table), part_(part), wanted_(wanted) {}

  std::size_t range_values() const override { return wanted_; }
  std::span<float> open(std::size_t values, std::vector<ValueRange> ranges) override {
    ranges_ = std::move(ranges);
    memory_.assign(values + 16, 0);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    values_ = std::span(memory_).subspan((64 - address % 64) % 64 / sizeof(float), values);
    return values_;
  }
  void begin() override { ready_.clear(); }
  void ready(std::size_t range) override {
    const std::lock_guard lock(mutex_);
    if (!ready_.insert(range).second) ++twice;
  }
  void progress() override {
    const std::lock_guard lock(mutex_);
    early = std::max(early, ready_.size());
  }
  void finish() override {
    if (ready_.size() != ranges_.size()) ++missing;
    std::vector<float> all(values_.begin(), values_.end());
    average(all);
    for (const ValueRange& range : ranges_)
      std::ranges::copy(std::span(all).subspan(range.begin, range.count), values_.begin() + range.begin);
  }
  void average_over_span(std::span<float> values) override { average(values); }

  const std::vector<ValueRange>& ranges() const { return ranges_; }
  int twice = 0, missing = 0;
  std::size_t early = 0;  // ranges that were complete before the end of the run

 private:
  void average(std::span<float> values) {
    table_.values[part_] = values;
    table_.barrier.arrive_and_wait();
    std::vector<float> mean(values.size(), 0);
    for (const auto& term : table_.values)
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += term[i];
    table_.barrier.arrive_and_wait();
    for (std::size_t i = 0; i < mean.size(); ++i)
      values[i] = mean[i] / static_cast<float>(table_.values.size());
  }

  Table& table_;
  std::size_t part_, wanted_;
  std::mutex mutex_;
  std::vector<ValueRange> ranges_;
  std::vector<float> memory_;
  std::span<float> values_;
  std::set<std::size_t> ready_;
};

graph::Graph normalised_network(std::int64_t batch) {
  graph::Graph graph("normalised");
  op::Builder b(graph);
  test::Layers layers(b, 5);
  const auto normalised = [&](op::Var x, const std::string& name) {
    const std::int64_t channels = x.shape()[1];
    const auto state = [&](const char* what, double value) {
      Tensor tensor(ElementType::f32, {channels});
      for (std::int64_t i = 0; i < channels; ++i) tensor.set(i, value + 0.1 * static_cast<double>(i));
      return b.state(name + what, tensor);
    };
    return op::batch_normalization(x, state(".scale", 1), state(".bias", 0), state(".mean", 0),
                                   state(".variance", 1));
  };
  op::Var y = b.input("x", ElementType::f32, {batch, 2, 6, 6});
  y = op::relu(normalised(layers.conv(y, "first", 8, 3), "norm1"));
  y = op::relu(normalised(layers.conv(y, "second", 6, 3), "norm2"));
  b.output("y", layers.dense(op::flatten(y), "dense", 3));
  return graph;
}

GraphAtBatch training(const GraphAtBatch& model, bool joint = false) {
  return [=](std::int64_t batch) {
    return transform::make_training_step(model(batch), {},
                                         {.kind = transform::OptimizerKind::sgd, .momentum = 0.9},
                                         {.joint_statistics = joint});
  };
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, Tensor> states;
};

constexpr std::int64_t samples = 24;
constexpr int steps = 4;

// Rows [part, part + 1) * samples / parts of a batch that grows along the channels, so that parts differ.
Tensor rows(const Executable::Port& port, int step, int part, int parts) {
  const Shape& shape = port.type.shape;
  if (shape.rank() == 0) return Tensor::scalar(0.05f);
  std::vector<std::int64_t> extents = shape.extents();
  extents[0] *= parts;
  Tensor all = random_tensor(ElementType::f32, Shape(extents), static_cast<std::uint64_t>(step) * 7 + 1);
  Tensor mine(ElementType::f32, shape);
  const std::int64_t length = shape.element_count();
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t from = part * length + i, row = from / (length / shape[0]);
    mine.set(i, all.at(from) * (1 + 0.1 * static_cast<double>(row)) + 0.05 * static_cast<double>(row));
  }
  return mine;
}

Trained train(const GraphAtBatch& step, const CompileOptions& options) {
  const auto executable = find_target("cpu").compile(step, options);
  Trained trained;
  for (int s = 0; s < steps; ++s) {
    std::vector<Tensor> inputs, outputs;
    for (const auto& port : executable->inputs())
      inputs.push_back(rows(port, s, options.parts.index, options.parts.count));
    for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
    executable->run(inputs, outputs);
    trained.losses.push_back(outputs[0].at(0));
  }
  for (const std::string& name : executable->state_names()) trained.states[name] = executable->state(name);
  return trained;
}

struct PartsRun {
  std::vector<Trained> trained;
  std::vector<std::unique_ptr<TableExchange>> exchanges;
};

PartsRun train_in_parts(const GraphAtBatch& step, int parts, std::int64_t micro_batch, int threads,
                        std::size_t wanted = 64) {
  Table table(parts);
  PartsRun run{.trained = std::vector<Trained>(static_cast<std::size_t>(parts)), .exchanges = {}};
  std::vector<std::thread> ranks;
  for (int part = 0; part < parts; ++part)
    run.exchanges.push_back(std::make_unique<TableExchange>(table, static_cast<std::size_t>(part), wanted));
  for (int part = 0; part < parts; ++part)
    ranks.emplace_back([&, part] {
      const auto index = static_cast<std::size_t>(part);
      run.trained[index] =
          train(step, {.batch = samples / parts,
                       .micro_batch = micro_batch,
                       .threads = threads,
                       .parts = {.count = parts, .index = part, .exchange = run.exchanges[index].get()}});
    });
  for (std::thread& rank : ranks) rank.join();
  return run;
}

double largest_difference(const Trained& a, const Trained& b) {
  double largest = 0;
  for (const auto& [name, tensor] : a.states)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      largest = std::max(largest, std::abs(tensor.at(i) - b.states.at(name).at(i)));
  return largest;
}

bool same_bits(const Trained& a, const Trained& b) {
  for (const auto& [name, tensor] : a.states)
    if (std::memcmp(tensor.bytes(), b.states.at(name).bytes(), tensor.byte_count()) != 0) return false;
  return a.losses == b.losses;
}

graph::Graph attention(std::int64_t batch) { return test::attention_network(batch); }

TEST(Parts, TrainWhatTheWholeBatchTrains) {
  const GraphAtBatch step = training(attention);
  const Trained whole = train(step, {.batch = samples, .micro_batch = 4});
  for (int parts : {2, 3})
    for (std::int64_t micro_batch : {1, 4, 24 / parts}) {
      const PartsRun run = train_in_parts(step, parts, micro_batch, 1);
      EXPECT_LT(largest_difference(whole, run.trained[0]), 1e-5) << parts << " " << micro_batch;
      for (int s = 0; s < steps; ++s)
        EXPECT_NEAR(
            run.trained[0].losses[static_cast<std::size_t>(s)] / whole.losses[static_cast<std::size_t>(s)], 1,
            1e-6);
      EXPECT_TRUE(same_bits(run.trained[0], run.trained[1]));
    }
}

TEST(Parts, HandOverEveryRangeOnceAndMostBeforeTheEnd) {
  for (int threads : {1, 2})
    for (std::int64_t micro_batch : {1, 3, 12}) {
      const PartsRun run = train_in_parts(training(attention), 2, micro_batch, threads);
      for (const auto& exchange : run.exchanges) {
        EXPECT_EQ(exchange->twice, 0);
        EXPECT_EQ(exchange->missing, 0);
        EXPECT_GT(exchange->ranges().size(), 4u);
        if (threads == 1) {
          EXPECT_GT(exchange->early, exchange->ranges().size() / 2);
        }
      }
    }
}

TEST(Parts, GiveTheSameBitsOnAnyNumberOfThreadsAndInRangesOfAnyLength) {
  const GraphAtBatch step = training(attention);
  const PartsRun one = train_in_parts(step, 2, 1, 1);
  EXPECT_TRUE(same_bits(one.trained[0], train_in_parts(step, 2, 1, 2).trained[0]));
  EXPECT_TRUE(same_bits(one.trained[0], train_in_parts(step, 2, 1, 1, 1 << 20).trained[1]));
}

TEST(Parts, NormaliseByTheStatisticsOfAllWhereTheyAreJoint) {
  const Trained whole = train(training(normalised_network), {.batch = samples});
  for (int parts : {2, 3}) {
    const PartsRun joint = train_in_parts(training(normalised_network, true), parts, 0, 1);
    EXPECT_LT(largest_difference(whole, joint.trained[0]), 2e-5) << parts;
    EXPECT_TRUE(same_bits(joint.trained[0], joint.trained[1]));
    for (int s = 0; s < steps; ++s)
      EXPECT_NEAR(
          joint.trained[0].losses[static_cast<std::size_t>(s)] / whole.losses[static_cast<std::size_t>(s)], 1,
          2e-6);
    // Each part's own statistics are another training.
    const PartsRun local = train_in_parts(training(normalised_network), parts, 0, 1);
    EXPECT_GT(largest_difference(whole, local.trained[0]), 1e-3) << parts;
  }
}

TEST(Parts, JointStatisticsOfOnePartAreItsOwn) {
  EXPECT_LT(largest_difference(train(training(normalised_network), {.batch = 8, .micro_batch = 8}),
                               train(training(normalised_network, true), {.batch = 8, .micro_batch = 8})),
            1e-6);
}

// --- ranges

cpu::Step writes(std::initializer_list<std::size_t> offsets) {
  cpu::Step step;
  for (const std::size_t offset : offsets) step.outputs.push_back({cpu::Space::accumulator, 0, offset});
  step.outputs.push_back({cpu::Space::arena, 0, 0});
  return step;
}

std::vector<ValueRange> ranges_of(const cpu::Plan& plan, std::size_t wanted) {
  std::vector<ValueRange> ranges;
  for (const auto& range : cpu::gradient_ranges(plan, wanted)) ranges.push_back(range.values);
  return ranges;
}

TEST(GradientRanges, FollowTheLastStepThatWritesThem) {
  cpu::Plan plan;
  plan.accumulator_slots = {0, 256, 512, 1024};
  plan.accumulator_bytes = 1280;
  plan.body = {writes({1024}), writes({256}), writes({0}), writes({300})};  // 300: in the middle of a slot
  EXPECT_EQ(ranges_of(plan, 16), (std::vector<ValueRange>{{256, 16},
                                                          {272, 16},
                                                          {288, 16},
                                                          {304, 16},
                                                          {0, 16},
                                                          {16, 16},
                                                          {32, 16},
                                                          {48, 16},
                                                          {64, 16},
                                                          {80, 16},
                                                          {96, 16},
                                                          {112, 16}}));
  // 0 and 256 join up to the wanted length and are complete with the later one; 512 is written by nobody.
  EXPECT_EQ(ranges_of(plan, 128), (std::vector<ValueRange>{{256, 64}, {0, 128}}));
  EXPECT_EQ(ranges_of(plan, ~std::size_t{0}), (std::vector<ValueRange>{{256, 64}, {0, 128}}));
}

}  // namespace
}  // namespace superstep::target
