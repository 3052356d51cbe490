// The CPU target against the reference evaluation: models, training steps, micro-batches, threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "superstep/op/rows/normalization.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "superstep/target/plan_cache.h"
#include "superstep/target/target.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using target::CompileOptions;
using target::Executable;
using target::GraphAtBatch;
using test::Case;
using test::expect_close;
using test::inputs_of;
using test::models;
using test::outputs_of;

GraphAtBatch training(const GraphAtBatch& model,
                      transform::OptimizerKind kind = transform::OptimizerKind::adam, double momentum = 0) {
  return [=](std::int64_t batch) {
    transform::OptimizerSpec optimizer{.kind = kind};
    optimizer.momentum = momentum;
    return transform::make_training_step(model(batch), {}, optimizer, {});
  };
}

TEST(CpuTarget, InfersAsTheReferenceDoes) {
  for (const Case& test : models())
    for (std::int64_t micro_batch : {1, 2, 4, 8}) {
      const auto cpu = target::find_target("cpu").compile(
          test.model, {.batch = 8, .micro_batch = micro_batch, .threads = 2});
      const auto reference = target::find_target("reference").compile(test.model, {.batch = 8});
      const auto inputs = inputs_of(*cpu, 3);
      auto actual = outputs_of(*cpu), expected = outputs_of(*reference);
      cpu->run(inputs, actual);
      reference->run(inputs, expected);
      expect_close(actual[0], expected[0], 2e-5,
                   std::string(test.name) + ", micro-batch " + std::to_string(micro_batch));
    }
}

// One pass over all parameters, by the kernel.
TEST(CpuTarget, AdamaxAndRmspropAreFlatPasses) {
  for (const auto& [kind, momentum, op] : {std::tuple(transform::OptimizerKind::adamax, 0.0, "Adamax"),
                                           {transform::OptimizerKind::rmsprop, 0.0, "RMSProp"},
                                           {transform::OptimizerKind::rmsprop, 0.9, "RMSProp"}}) {
    const GraphAtBatch step =
        training([](std::int64_t batch) { return test::perceptron(batch); }, kind, momentum);
    const auto cpu = target::find_target("cpu").compile(step, {.batch = 8, .micro_batch = 4, .threads = 2});
    const auto reference = target::find_target("reference").compile(step, {.batch = 8});
    const auto inputs = inputs_of(*cpu, 9);
    auto actual = outputs_of(*cpu), expected = outputs_of(*reference);
    for (int i = 0; i < 4; ++i) {
      cpu->run(inputs, actual);
      reference->run(inputs, expected);
      expect_close(actual[0], expected[0], 1e-4, std::string(op) + " loss");
    }
    for (const std::string& name : cpu->state_names())
      expect_close(cpu->state(name), reference->state(name), 1e-3, std::string(op) + " " + name);
    EXPECT_EQ(
        std::ranges::count(cpu->summary().update, "superstep." + std::string(op), &target::PlanStep::op), 1)
        << op;
  }
}

// Its step needs norms of whole tensors: vector code of its parts, no evaluation of its definition.
TEST(CpuTarget, LambRunsInKernels) {
  const GraphAtBatch step =
      training([](std::int64_t batch) { return test::perceptron(batch); }, transform::OptimizerKind::lamb, 0);
  const auto cpu = target::find_target("cpu").compile(step, {.batch = 8, .micro_batch = 4, .threads = 2});
  const auto reference = target::find_target("reference").compile(step, {.batch = 8});
  const auto inputs = inputs_of(*cpu, 9);
  auto actual = outputs_of(*cpu), expected = outputs_of(*reference);
  for (int i = 0; i < 4; ++i) {
    cpu->run(inputs, actual);
    reference->run(inputs, expected);
    expect_close(actual[0], expected[0], 1e-4, "loss");
  }
  for (const std::string& name : cpu->state_names())
    expect_close(cpu->state(name), reference->state(name), 1e-3, name);
  for (const target::PlanStep& each : cpu->summary().update) {
    EXPECT_NE(each.op, "superstep.Lamb");
    EXPECT_TRUE(each.kernel != "reference evaluation" || each.bytes <= 4096) << each.op;
  }
}

TEST(CpuTarget, TrainsAsTheReferenceDoes) {
  for (const Case& test : models())
    for (std::int64_t micro_batch : {2, 8}) {
      const GraphAtBatch step = training(test.model, transform::OptimizerKind::sgd, 0.9);
      const auto cpu =
          target::find_target("cpu").compile(step, {.batch = 8, .micro_batch = micro_batch, .threads = 2});
      const auto reference = target::find_target("reference").compile(step, {.batch = 8});
      const auto inputs = inputs_of(*cpu, 9);
      auto actual = outputs_of(*cpu), expected = outputs_of(*reference);
      for (int i = 0; i < 3; ++i) {
        cpu->run(inputs, actual);
        reference->run(inputs, expected);
        expect_close(actual[0], expected[0], 1e-4, std::string(test.name) + " loss");
      }
      for (const std::string& name : cpu->state_names())
        expect_close(cpu->state(name), reference->state(name), 1e-3, std::string(test.name) + " " + name);
    }
}

graph::Graph normalised(std::int64_t batch, std::int64_t taps) {
  graph::Graph graph("normalised");
  op::Builder b(graph);
  test::Layers layers(b, 5);
  const auto state = [&](const char* name, double value) {
    Tensor tensor(ElementType::f32, {24});
    for (std::int64_t i = 0; i < 24; ++i) tensor.set(i, value + 0.1 * static_cast<double>(i));
    return b.state(name, tensor);
  };
  const op::Var x = b.input("x", ElementType::f32, {batch, 16, 6, 6});
  const op::Var y = op::batch_normalization(layers.conv(x, "conv", 24, taps), state("scale", 1),
                                            state("bias", 0), state("mean", 0.5), state("variance", 1));
  b.output("y", layers.dense(op::flatten(op::relu(y)), "dense", 3));
  return graph;
}

// The factors go into the weights before these are rounded; nothing of the normalisation is left to run. In
// bf16 of one tap: Winograd's algorithm, which some processors are faster with, rounds more than is held to
// here.
TEST(CpuTarget, NormalisationsAreFoldedIntoConvolutionsOfEitherPrecision) {
  for (const bool narrow : {false, true}) {
    const GraphAtBatch exact = [&](std::int64_t batch) { return normalised(batch, narrow ? 1 : 3); };
    const GraphAtBatch model = [&](std::int64_t batch) {
      return narrow ? transform::autocast(exact(batch), ElementType::bf16) : exact(batch);
    };
    const auto cpu = target::find_target("cpu").compile(model, {.batch = 4, .micro_batch = 4});
    const auto reference = target::find_target("reference").compile(exact, {.batch = 4});
    const auto inputs = inputs_of(*cpu, 3);
    auto actual = outputs_of(*cpu), expected = outputs_of(*reference);
    cpu->run(inputs, actual);
    reference->run(inputs, expected);
    expect_close(actual[0], expected[0], narrow ? 0.02 : 2e-5, narrow ? "bf16" : "f32");
    int convolutions = 0;
    for (const auto& step : cpu->summary().steps) {
      EXPECT_NE(step.kernel, "reference evaluation") << step.op;
      if (!step.op.starts_with("Conv")) continue;
      ++convolutions;
      EXPECT_EQ(std::string::npos, step.op.find("Mul")) << step.op;
      // Where a processor has no fast products of bf16 pairs, bf16 is stored and multiplied as f32.
      const bool pairs = kernels::multiplies_pairs_fast();
      EXPECT_EQ(narrow && pairs, step.arithmetic == ElementType::bf16);
    }
    EXPECT_EQ(1, convolutions);
  }
}

// bf16 products: the plan keeps sums in f32 where the reference rounds them, so the two differ by roundings
// to 8 bits. A gradient that went missing would be off by far more.
TEST(CpuTarget, TrainsInBfloat16) {
  for (const Case& test : models()) {
    const GraphAtBatch step = training(
        [&](std::int64_t batch) {
          return transform::autocast(test.model(batch), ElementType::bf16, {.least_width = 1});
        },
        transform::OptimizerKind::sgd);
    const auto cpu = target::find_target("cpu").compile(step, {.batch = 8, .micro_batch = 4, .threads = 2});
    const auto reference = target::find_target("reference").compile(step, {.batch = 8});
    const auto inputs = inputs_of(*cpu, 9);
    auto actual = outputs_of(*cpu), expected = outputs_of(*reference);
    std::map<std::string, Tensor> before;
    for (const std::string& name : cpu->state_names()) before.emplace(name, cpu->state(name));
    cpu->run(inputs, actual);
    reference->run(inputs, expected);
    expect_close(actual[0], expected[0], 0.02, std::string(test.name) + " loss");
    std::map<std::string, std::pair<double, double>>
        moves;  // how far a state moved, and how far apart the two ended
    double farthest = 0;
    for (const auto& [name, start] : before) {
      const Tensor a = cpu->state(name), b = reference->state(name);
      auto& [moved, apart] = moves[name];
      for (std::int64_t i = 0; i < a.element_count(); ++i) {
        apart = std::max(apart, std::abs(a.at(i) - b.at(i)));
        moved = std::max(moved, std::abs(b.at(i) - start.at(i)));
      }
      farthest = std::max(farthest, moved);
    }
    for (const auto& [name, move] : moves)
      EXPECT_LT(move.second, 0.15 * move.first + 0.003 * farthest) << test.name << " " << name;
    for (const auto& plan_step : cpu->summary().steps)
      EXPECT_NE(plan_step.kernel, "reference evaluation")
          << test.name << ": " << plan_step.op << " " << plan_step.node;
  }
}

TEST(CpuTarget, NothingIsLeftToTheReferenceEvaluation) {
  for (const Case& test : models()) {
    const auto cpu = target::find_target("cpu").compile(training(test.model), {.batch = 8, .micro_batch = 4});
    for (const auto& step : cpu->summary().steps)
      EXPECT_NE(step.kernel, "reference evaluation") << test.name << ": " << step.op << " " << step.node;
  }
}

// An expansion runs with the depthwise convolution behind it; in training, where the gradient reads what lies
// between, each runs alone.
TEST(CpuTarget, ExpansionsRunWithTheirDepthwiseConvolution) {
  const GraphAtBatch model = models().back().model;
  const auto count = [](const Executable& executable) {
    int steps = 0;
    for (const auto& step : executable.summary().steps) steps += step.kernel.starts_with("expansion");
    return steps;
  };
  EXPECT_EQ(count(*target::find_target("cpu").compile(model, {.batch = 2})), 2);
  EXPECT_EQ(count(*target::find_target("cpu").compile(training(model), {.batch = 2})), 0);
}

void expect_same_bits_on_any_threads(const GraphAtBatch& step, std::int64_t micro_batch) {
  std::vector<std::vector<Tensor>> states;
  for (int threads : {1, 2, 3}) {
    const auto cpu = target::find_target("cpu").compile(
        step, {.batch = 32, .micro_batch = micro_batch, .threads = threads});
    const auto inputs = inputs_of(*cpu, 1);
    auto outputs = outputs_of(*cpu);
    for (int i = 0; i < 3; ++i) cpu->run(inputs, outputs);
    states.emplace_back();
    for (const std::string& name : cpu->state_names()) states.back().push_back(cpu->state(name));
  }
  for (std::size_t other : {1u, 2u})
    for (std::size_t i = 0; i < states[0].size(); ++i)
      EXPECT_EQ(std::memcmp(states[0][i].bytes(), states[other][i].bytes(), states[0][i].byte_count()), 0);
}

// The gradients are summed in groups whose order does not depend on the threads.
TEST(CpuTarget, GivesTheSameBitsWhateverTheThreads) {
  expect_same_bits_on_any_threads(training(models()[0].model), 2);
}

// One micro-batch: every step is divided over the threads.
TEST(CpuTarget, GivesTheSameBitsWhenStepsAreDivided) {
  for (const Case& test : models()) {
    SCOPED_TRACE(test.name);
    expect_same_bits_on_any_threads(training(test.model), 32);
  }
}

TEST(CpuTarget, RefusesTensorsOfAnotherType) {
  const auto cpu = target::find_target("cpu").compile(models()[1].model, {.batch = 4});
  auto outputs = outputs_of(*cpu);
  const std::vector<Tensor> wrong{Tensor(ElementType::f32, {4, 17})};
  try {
    cpu->run(wrong, outputs);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "input x: is f32[4,17], the model wants f32[4,16]");
  }
}

TEST(CpuTarget, RefusesAMicroBatchThatDoesNotDivide) {
  EXPECT_THROW(target::find_target("cpu").compile(models()[1].model, {.batch = 8, .micro_batch = 3}), Error);
}

// Weights that are packed leave their place; whoever asks for them, or gives others, sees them as they were.
TEST(CpuTarget, PackedWeightsAreThereWhenTheyAreAskedFor) {
  const auto wide = [](std::int64_t batch) {
    graph::Graph graph("wide");
    op::Builder b(graph);
    test::Layers layers(b, 5);
    b.output("y", layers.dense(op::relu(layers.dense(b.input("x", ElementType::f32, {batch, 200}), "a", 180)),
                               "b", 190));
    return graph;
  };
  const auto cpu = target::find_target("cpu").compile(wide, {.batch = 4});
  const auto reference = target::find_target("reference").compile(wide, {.batch = 4});
  const auto inputs = inputs_of(*cpu);
  auto outputs = outputs_of(*cpu), expected = outputs_of(*reference);
  const auto agree = [&] {
    cpu->run(inputs, outputs);
    reference->run(inputs, expected);
    expect_close(outputs[0], expected[0], 1e-5, "wide");
  };
  agree();
  for (const std::string& name : cpu->state_names()) {
    expect_close(cpu->state(name), reference->state(name), 0, name);
    const Tensor other = test::random_tensor(ElementType::f32, cpu->state(name).shape(), 77, 0.1);
    cpu->set_state(name, other);
    reference->set_state(name, other);
    agree();
    expect_close(cpu->state_in_place(name), other, 0, name);
  }
  agree();
}

// A normalisation is folded into weights that are then packed: neither the weights nor what they are when it
// is folded in have a place of their own beside the packed ones, on any number of threads.
TEST(CpuTarget, WhatPackedWeightsAreMadeOfPassesThrough) {
  const auto normalised = [](std::int64_t batch) {
    graph::Graph graph("normalised");
    op::Builder b(graph);
    test::Layers layers(b, 6);
    op::Var x = b.input("x", ElementType::f32, {batch, 256, 3, 2});
    for (const char* name : {"a", "b", "c"}) {
      const auto state = [&](const char* part, double value) {
        return b.state(std::string(name) + part, Tensor::full(ElementType::f32, {256}, value));
      };
      x = op::relu(op::batch_normalization(layers.conv(x, name, 256, 1), state(".scale", 1.25),
                                           state(".shift", 0.5), state(".mean", -0.5),
                                           state(".variance", 2)));
    }
    b.output("y", x);
    return graph;
  };
  for (const int threads : {1, 3}) {
    const auto reference = target::find_target("reference").compile(normalised, {.batch = 2});
    const auto cpu = target::find_target("cpu").compile(normalised, {.batch = 2, .threads = threads});
    const target::PlanSummary summary = cpu->summary();
    EXPECT_LT(summary.constant_bytes, summary.state_bytes * 5 / 4);  // packed: no other copy of all weights
    const auto inputs = inputs_of(*cpu);
    auto outputs = outputs_of(*cpu), expected = outputs_of(*reference);
    const auto agree = [&] {
      cpu->run(inputs, outputs);
      reference->run(inputs, expected);
      expect_close(outputs[0], expected[0], 1e-4, "normalised");
    };
    agree();
    for (const std::string& name : cpu->state_names()) {
      if (!name.starts_with("b.") || name.ends_with("variance")) continue;
      const Tensor other = test::random_tensor(ElementType::f32, cpu->state(name).shape(), 77, 0.1);
      cpu->set_state(name, other);
      reference->set_state(name, other);
      agree();
    }
  }
}

TEST(PlanCache, CompilesAShapeOnceAndKeepsItsStates) {
  target::PlanCache plans(target::find_target("cpu"), models()[1].model, {.threads = 1});
  target::Executable& first = plans.at(8);
  const Tensor bias = test::random_tensor(ElementType::f32, {24}, 77);
  plans.set_states({{"dense1.bias", bias}});
  target::Executable& other = plans.at(3);
  EXPECT_EQ(&plans.at(8), &first);
  EXPECT_EQ(plans.size(), 2u);
  for (target::Executable* plan : {&first, &other})
    EXPECT_EQ(std::memcmp(plan->state("dense1.bias").bytes(), bias.bytes(), bias.byte_count()), 0);
}

TEST(Targets, UnknownNameGetsTheNearest) {
  try {
    target::find_target("cpuu");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "did you mean 'cpu'?");
  }
}

}  // namespace
}  // namespace superstep
