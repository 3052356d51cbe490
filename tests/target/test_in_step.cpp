// Micro-batches in step: a batch in parts that take their statistics together trains what the whole batch
// does.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "superstep/op/rows/group_normalization.h"
#include "superstep/op/rows/normalization.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/cpu/passes/decompose.h"
#include "superstep/target/cpu/plan/join.h"
#include "superstep/target/cpu/plan/micro_batch.h"
#include "superstep/transform/training/over_parts.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/run.h"

namespace superstep::target {
namespace {

// Random extents; with normalisations, pooling and a score in [0, 1] for each position.
struct Network {
  std::int64_t channels, width, height, columns;
  transform::LossKind loss;

  static Network random(std::uint64_t seed) {
    RandomStream random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
    return {1 + below(3), 3 + below(20), 4 + 2 * below(4), 4 + 2 * below(4),
            seed % 2 == 0 ? transform::LossKind::dice : transform::LossKind::mse};
  }

  graph::Graph operator()(std::int64_t batch) const {
    graph::Graph graph("normalised");
    op::Builder b(graph);
    test::Layers layers(b, 5);
    const auto normalised = [&](op::Var x, const std::string& name) {
      const std::int64_t count = x.shape()[1];
      const auto state = [&](const char* what, double value) {
        return b.state(name + what, Tensor::full(ElementType::f32, {count}, value));
      };
      return op::batch_normalization(x, state(".scale", 1), state(".bias", 0.1), state(".mean", 0),
                                     state(".variance", 1));
    };
    const op::ConvAttributes same{.pads = {1, 1, 1, 1}};
    op::Var y = b.input("x", ElementType::f32, {batch, channels, height, columns});
    y = op::relu(normalised(layers.conv(y, "first", width, 3, same), "norm1"));
    const op::Var skip = y;
    y = op::relu(normalised(layers.conv(y, "second", width, 3, same), "norm2")) + skip;
    y = op::max_pool(y, {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
    b.output("y", op::sigmoid(layers.conv(normalised(y, "norm3"), "last", 2, 1)));
    return graph;
  }

  GraphAtBatch training() const {
    return [net = *this](std::int64_t batch) {
      return transform::make_training_step(net(batch), {.terms = {{.kind = net.loss}}},
                                           {.kind = transform::OptimizerKind::sgd, .momentum = 0.9}, {});
    };
  }
};

// A batch whose samples differ in mean and spread, so that no part's statistics are those of the whole.
void fill(std::vector<Tensor>& inputs, std::int64_t batch) {
  for (Tensor& input : inputs) {
    if (input.shape().rank() == 0) continue;
    const std::int64_t row = input.element_count() / batch;
    for (std::int64_t i = 0; i < input.element_count(); ++i)
      input.set(i,
                input.at(i) * (1 + 0.2 * static_cast<double>(i / row)) + 0.1 * static_cast<double>(i / row));
  }
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, Tensor> states;
};

Trained train(const GraphAtBatch& model, const CompileOptions& options) {
  test::Runner runner("cpu", model, options, 0.05f);
  fill(runner.inputs, options.batch);
  Trained trained;
  for (int step = 0; step < 3; ++step) {
    runner.run();
    for (const Tensor& output : runner.outputs)
      if (output.element_count() == 1) trained.losses.push_back(output.at(0));
  }
  for (const std::string& name : runner.executable->state_names())
    trained.states.emplace(name, runner.executable->state(name));
  return trained;
}

void expect_same_training(const Trained& actual, const Trained& expected, double tolerance) {
  ASSERT_EQ(actual.losses.size(), expected.losses.size());
  ASSERT_FALSE(expected.losses.empty());
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(actual.losses[i], expected.losses[i], tolerance * std::abs(expected.losses[i]) + 1e-6);
  for (const auto& [name, value] : expected.states)
    test::expect_close(actual.states.at(name), value, tolerance, name);
}

void expect_same_bits(const Trained& actual, const Trained& expected) {
  EXPECT_EQ(actual.losses, expected.losses);
  for (const auto& [name, value] : expected.states)
    EXPECT_EQ(std::memcmp(actual.states.at(name).bytes(), value.bytes(), value.byte_count()), 0) << name;
}

constexpr double tolerance = 2e-3;  // of sums in another order, through three steps

TEST(InStep, PartsTrainWhatTheWholeBatchTrains) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Network network = Network::random(seed);
    const GraphAtBatch model = network.training();
    const Trained whole = train(model, {.batch = 12, .micro_batch = 12});
    for (const std::int64_t micro_batch : {1, 2, 3, 6}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", micro-batch " + std::to_string(micro_batch));
      expect_same_training(train(model, {.batch = 12, .micro_batch = micro_batch}), whole, tolerance);
    }
  }
}

// The reference knows of no parts: that the whole batch is right is what the rest is measured by.
TEST(InStep, TrainAsTheReferenceDoes) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const GraphAtBatch model = Network::random(seed).training();
    test::Runner reference("reference", model, {.batch = 6}, 0.05f),
        cpu("cpu", model, {.batch = 6, .threads = 2}, 0.05f);
    EXPECT_LT(cpu.executable->summary().micro_batch, 6);
    fill(reference.inputs, 6), fill(cpu.inputs, 6);
    for (int step = 0; step < 2; ++step) reference.run(), cpu.run();
    for (const std::string& name : reference.executable->state_names())
      test::expect_close(cpu.executable->state(name), reference.executable->state(name), tolerance, name);
  }
}

TEST(InStep, GiveTheSameBitsWhateverTheThreads) {
  for (std::uint64_t seed = 10; seed < 14; ++seed) {
    const GraphAtBatch model = Network::random(seed).training();
    const Trained one = train(model, {.batch = 12, .threads = 1});
    for (const int threads : {2, 3, 5}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", threads " + std::to_string(threads));
      expect_same_bits(train(model, {.batch = 12, .threads = threads}), one);
    }
  }
}

// A graph of one sample says less: groups of channels beside statistics of the batch trained on no batch of a
// prime number of samples.
TEST(InStep, WhatOneSampleDoesNotTellIsTakenInLargerParts) {
  const auto network = [](std::int64_t batch) {
    graph::Graph graph("grouped");
    op::Builder b(graph);
    test::Layers layers(b, 5);
    const auto state = [&](const char* name, double value) {
      return b.state(name, Tensor::full(ElementType::f32, {8}, value));
    };
    const op::ConvAttributes same{.pads = {1, 1, 1, 1}};
    op::Var y = layers.conv(b.input("x", ElementType::f32, {batch, 3, 8, 8}), "first", 8, 3, same);
    y = op::relu(op::batch_normalization(y, state("a", 1), state("b", 0.1), state("c", 0), state("d", 1)));
    y = op::group_normalization(layers.conv(y, "second", 8, 3, same), state("e", 1), state("f", 0.2), 2);
    b.output("y", op::sigmoid(layers.conv(y, "last", 2, 1)));
    return transform::make_training_step(graph, {}, {.kind = transform::OptimizerKind::sgd}, {});
  };
  for (const std::int64_t batch : {5, 6}) {
    const Trained whole = train(network, {.batch = batch, .micro_batch = batch});
    for (const int threads : {1, 2, 4})
      expect_same_training(train(network, {.batch = batch, .threads = threads}), whole, tolerance);
  }
}

// The control of the tests above: parts that know nothing of each other train something else.
TEST(InStep, StatisticsOfOnePartAloneWouldBeNoticed) {
  const GraphAtBatch model = Network::random(1).training();
  const Trained whole = train(model, {.batch = 12, .micro_batch = 12}),
                part = train(model, {.batch = 3, .micro_batch = 3});
  EXPECT_GT(std::abs(part.losses[0] - whole.losses[0]), 10 * tolerance * std::abs(whole.losses[0]));
}

TEST(InStep, JoinsAverageInTheOrderOfTheParts) {
  constexpr std::size_t count = 7, parts = 3;
  const auto kernel = cpu::prepare_mean_of_parts(count);
  std::vector<std::vector<float>> x(parts, std::vector<float>(count)), y = x;
  for (std::size_t p = 0; p < parts; ++p)
    for (std::size_t i = 0; i < count; ++i)
      x[p][i] = static_cast<float>(RandomStream(p * count + i).uniform());
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (std::size_t p = 0; p < parts; ++p) {
    inputs.insert(inputs.end(), {x[p].data(), nullptr});
    outputs.push_back(y[p].data());
  }
  std::vector<kernels::Arguments> arguments;
  for (std::size_t p = 0; p < parts; ++p)
    arguments.push_back({std::span(inputs).subspan(2 * p, 2), std::span(outputs).subspan(p, 1)});
  dynamic_cast<const cpu::Join&>(*kernel).join(arguments);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t p = 0; p < parts; ++p) EXPECT_EQ(y[p][i], (x[0][i] + x[1][i] + x[2][i]) * (1.0f / 3));
}

TEST(InStep, ManyWeightsMakeOnePartAThread) {
  EXPECT_EQ(cpu::choose_in_step(8, 1, false), 8);
  EXPECT_EQ(cpu::choose_in_step(8, 2, false), 4);
  EXPECT_EQ(cpu::choose_in_step(8, 3, false), 8);  // a third thread would be idle
  EXPECT_EQ(cpu::choose_in_step(7, 2, false), 7);
}

TEST(InStep, FewWeightsMakePartsThatDoNotDependOnTheThreads) {
  for (const std::int64_t batch : {2, 6, 7, 8, 64, 1000}) {
    const std::int64_t chosen = cpu::choose_in_step(batch, 1, true);
    EXPECT_EQ(batch % chosen, 0);
    EXPECT_LT(chosen, batch);
    for (const int threads : {2, 3, 64}) EXPECT_EQ(cpu::choose_in_step(batch, threads, true), chosen);
  }
}

// A sum over the batch that nobody vouches for, given back to the samples: the batch stays whole.
TEST(OverParts, RefusesWhatMixesSamplesInAnotherWay) {
  const auto model = [](std::int64_t batch, bool mixes) {
    const Network network = Network::random(3);
    graph::Graph graph = network(batch);
    op::Builder b(graph);
    const op::Var y = b.var(graph.outputs()[0].value);
    b.output("z", mixes ? y / op::reduce_sum(y) : y * 2.0);
    return cpu::decompose(transform::make_training_step(graph, {.terms = {{.output = "z"}}}, {}, {}));
  };
  EXPECT_TRUE(transform::over_parts(model(4, false), 2));
  EXPECT_FALSE(transform::over_parts(model(4, true), 2));
  EXPECT_FALSE(transform::over_parts(test::perceptron(4), 2)) << "nothing mixes samples";
}

}  // namespace
}  // namespace superstep::target
