// Attention as one step of the CPU's plans, against the reference evaluation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/target/target.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using op::Var;
using target::Executable;
using target::GraphAtBatch;
using test::inputs_of;

enum class Masking { none, padding, causal };

struct Form {
  std::int64_t length = 10, heads = 2, size = 4;
  Masking masking = Masking::none;
  bool scales_scores = false;  // divided behind the product; else q is multiplied in front of it
  bool drops = false;
  bool keeps_weights = false;  // the weights are an output too
  bool guards = false;         // weights that are NaN are zero
  int layers = 0;              // behind it, each with an activation that is kept for its gradient
  std::int64_t sharing = 1;    // heads of queries that share a head of keys
  bool scales_both = false;    // q and k each by the root of the factor, k turned by way of three axes
};

std::string to_string(const Form& f) {
  return fmt::format("length {}, {} heads of {}, mask {}, scales scores {}, drops {}", f.length, f.heads,
                     f.size, static_cast<int>(f.masking), f.scales_scores, f.drops);
}

Form random_form(std::uint64_t seed) {
  RandomStream random(seed);
  const auto pick = [&](std::initializer_list<std::int64_t> list) {
    return list.begin()[random.below(list.size())];
  };
  Form form{.length = pick({3, 16, 17, 40, 65}),
            .heads = pick({1, 2, 3}),
            .size = pick({4, 8, 11, 16}),
            .masking = static_cast<Masking>(random.below(3)),
            .scales_scores = random.below(2) == 0,
            .drops = random.below(2) == 0};
  // Without either, short ones stay in parts.
  if (form.masking == Masking::none) form.drops = true;
  return form;
}

Var causal_condition(op::Builder& b, std::int64_t length) {
  Tensor seen(ElementType::boolean, {length, length});
  for (std::int64_t row = 0; row < length; ++row)
    for (std::int64_t key = 0; key <= row; ++key) seen.set(row * length + key, 1);
  return b.constant(std::move(seen));
}

Var masked(op::Builder& b, Var scores, Var mask, const Form& f) {
  if (f.masking == Masking::padding) return scores + op::reshape(mask, {mask.shape()[0], 1, 1, f.length});
  if (f.masking == Masking::causal)
    return op::where(causal_condition(b, f.length), scores, b.scalar(ElementType::f32, -1e9));
  return scores;
}

// Each head as often as queries share it, as exporters and libraries of transformers write it.
Var repeated(Var heads, std::int64_t times) {
  if (times == 1) return heads;
  const std::int64_t n = heads.shape()[0], count = heads.shape()[1], length = heads.shape()[2],
                     size = heads.shape()[3];
  const Var copies = op::expand(op::unsqueeze(heads, {2}), {n, count, times, length, size});
  return op::reshape(copies, {n, count * times, length, size});
}

// x [N, T, W] and a mask [N, T] to [N, T, W]: query, key, value, attention over heads, a dense layer.
graph::Graph attention_model(std::int64_t batch, const Form& f) {
  const std::int64_t width = f.heads * f.size;
  graph::Graph graph("attention");
  op::Builder b(graph);
  test::Layers layers(b, 5);
  const Var x = b.input("x", ElementType::f32, {batch, f.length, width});
  const Var mask = b.input("mask", ElementType::f32, {batch, f.length});
  const auto heads = [&](const char* name, std::int64_t sharing) {
    const std::int64_t count = f.heads / sharing;
    const Var w = layers.parameter(name, {width, count * f.size}, static_cast<double>(width));
    const Var x_w = op::reshape(op::matmul(x, w), {batch, f.length, count, f.size});
    return repeated(op::transpose(x_w, {0, 2, 1, 3}), sharing);
  };
  const auto turned = [&](Var k) {
    if (!f.scales_both) return op::transpose(k, {0, 1, 3, 2});
    const Var three = op::transpose(op::reshape(k, {batch * f.heads, f.length, f.size}), {0, 2, 1});
    return op::reshape(three, {batch, f.heads, f.size, f.length}) * 0.5;
  };
  const Var q = heads("query", 1), k = turned(heads("key", f.sharing)), v = heads("value", f.sharing);
  const double root = std::sqrt(static_cast<double>(f.size));
  const Var scores = f.scales_scores ? op::matmul(q, k) / root : op::matmul(q * (1 / root), k);
  Var weights = op::softmax(masked(b, scores, mask, f), -1);
  if (f.keeps_weights) b.output("weights", weights);
  if (f.guards) weights = op::where(op::is_nan(weights), b.scalar(ElementType::f32, 0), weights);
  if (f.drops)
    weights = op::dropout(weights, 0.25, b.state("counter", Tensor::scalar(std::int64_t{3})), 9, 1);
  Var mixed = op::reshape(op::transpose(op::matmul(weights, v), {0, 2, 1, 3}), x.shape());
  for (int layer = 0; layer < f.layers; ++layer) {
    const Var w =
        layers.parameter("layer" + std::to_string(layer), {width, width}, static_cast<double>(width));
    mixed = op::matmul(mixed, w);
    mixed = mixed * op::sigmoid(mixed);
  }
  b.output("y", op::matmul(mixed, layers.parameter("out", {width, width}, static_cast<double>(width))));
  return graph;
}

GraphAtBatch model_of(const Form& f) {
  return [f](std::int64_t batch) { return attention_model(batch, f); };
}

GraphAtBatch training(const GraphAtBatch& model) {
  return [=](std::int64_t batch) {
    return transform::make_training_step(model(batch), {}, {.kind = transform::OptimizerKind::sgd}, {});
  };
}

std::vector<Tensor> run(Executable& executable, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  executable.run(inputs, outputs);
  return outputs;
}

int steps_with(const Executable& executable, std::string_view kernel) {
  return static_cast<int>(std::ranges::count_if(
      executable.summary().steps, [&](const auto& step) { return step.kernel.starts_with(kernel); }));
}

// The largest difference in units of the largest element.
double difference(const Tensor& a, const Tensor& b) {
  double worst = 0, largest = 1e-4;
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    if (!std::isfinite(a.at(i))) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(a.at(i) - b.at(i)));
    largest = std::max(largest, std::abs(b.at(i)));
  }
  return worst / largest;
}

TEST(Attention, InfersAsTheReferenceDoes) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Form form = random_form(seed);
    SCOPED_TRACE(to_string(form));
    const auto cpu = target::find_target("cpu").compile(
        model_of(form), {.batch = 3, .micro_batch = seed % 2 ? 1 : 3, .threads = 2});
    const auto reference = target::find_target("reference").compile(model_of(form), {.batch = 3});
    EXPECT_EQ(steps_with(*cpu, "attention, "), 1);
    EXPECT_EQ(steps_with(*cpu, "softmax"), 0);
    for (const auto& step : cpu->summary().steps)
      EXPECT_TRUE(step.op != "Reshape" && step.op != "Transpose") << "heads are views";
    const auto inputs = inputs_of(*cpu, seed);
    EXPECT_LT(difference(run(*cpu, inputs)[0], run(*reference, inputs)[0]), 2e-5);
  }
}

// As exporters write attention over masks that may hide whole rows.
TEST(Attention, IsOneStepBehindAGuardAgainstNaN) {
  const Form form{.length = 40, .masking = Masking::padding, .guards = true};
  const auto cpu = target::find_target("cpu").compile(model_of(form), {.batch = 3, .threads = 2});
  const auto reference = target::find_target("reference").compile(model_of(form), {.batch = 3});
  EXPECT_EQ(steps_with(*cpu, "attention, "), 1);
  EXPECT_EQ(steps_with(*cpu, "softmax"), 0);
  auto inputs = inputs_of(*cpu, 5);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < 40; ++i) inputs[1].set(40 + i, -infinity);  // all of the second sample
  for (std::int64_t i = 5; i < 40; ++i) inputs[1].set(80 + i, -infinity);
  const Tensor y = run(*cpu, inputs)[0];
  EXPECT_LT(difference(y, run(*reference, inputs)[0]), 2e-5);
  for (std::int64_t i = 0; i < y.element_count() / 3; ++i) EXPECT_EQ(y.at(y.element_count() / 3 + i), 0);
}

// Heads of keys that several heads of queries read are not copied for them.
TEST(Attention, ReadsSharedHeadsWhereTheyLie) {
  for (const std::int64_t sharing : {2, 4}) {
    for (const Masking masking : {Masking::none, Masking::padding, Masking::causal}) {
      const Form form{.length = 17,
                      .heads = 4,
                      .size = 8,
                      .masking = masking,
                      .sharing = sharing,
                      .scales_both = masking != Masking::none};
      SCOPED_TRACE(to_string(form));
      const auto cpu =
          target::find_target("cpu").compile(model_of(form), {.batch = 3, .micro_batch = 3, .threads = 2});
      const auto reference = target::find_target("reference").compile(model_of(form), {.batch = 3});
      EXPECT_EQ(steps_with(*cpu, "attention, "), 1);
      for (const auto& step : cpu->summary().steps) EXPECT_NE(step.op, "Expand") << step.kernel;
      const auto inputs = inputs_of(*cpu, static_cast<std::uint64_t>(sharing));
      EXPECT_LT(difference(run(*cpu, inputs)[0], run(*reference, inputs)[0]), 2e-5);
    }
  }
}

TEST(Attention, TrainsWithSharedHeads) {
  const Form form{.length = 17, .heads = 4, .size = 8, .masking = Masking::causal, .sharing = 2};
  const GraphAtBatch step = training(model_of(form));
  const auto cpu = target::find_target("cpu").compile(step, {.batch = 3, .threads = 2});
  const auto reference = target::find_target("reference").compile(step, {.batch = 3});
  EXPECT_EQ(steps_with(*cpu, "attention gradient"), 1);
  const auto inputs = inputs_of(*cpu, 5);
  EXPECT_LT(difference(run(*cpu, inputs)[0], run(*reference, inputs)[0]), 1e-5);
  EXPECT_LT(difference(cpu->state("key"), reference->state("key")), 1e-5);
}

// The gradient through the choice is a step that the attention of a training has not.
TEST(Attention, GuardedOnesTrainInParts) {
  const Form form{.length = 40, .masking = Masking::padding, .guards = true};
  const GraphAtBatch step = training(model_of(form));
  const auto cpu = target::find_target("cpu").compile(step, {.batch = 3, .threads = 2});
  const auto reference = target::find_target("reference").compile(step, {.batch = 3});
  EXPECT_EQ(steps_with(*cpu, "attention, "), 0);
  const auto inputs = inputs_of(*cpu, 5);
  EXPECT_LT(difference(run(*cpu, inputs)[0], run(*reference, inputs)[0]), 1e-5);
}

// What is computed again to save memory leaves attention in one step: it makes its scores again itself.
TEST(Attention, StaysOneStepBelowAMemoryLimit) {
  const Form form{.length = 160, .heads = 2, .size = 16, .drops = true, .layers = 6};
  const GraphAtBatch step = training(model_of(form));
  const auto free = target::find_target("cpu").compile(step, {.batch = 1});
  ASSERT_EQ(steps_with(*free, "attention, "), 1);
  const std::size_t limit = free->summary().plan_bytes * 9 / 10;
  const auto limited = target::find_target("cpu").compile(step, {.batch = 1, .memory_limit = limit});
  EXPECT_NE(limited->summary().choice.find("computed again"), std::string::npos);
  EXPECT_EQ(steps_with(*limited, "attention, "), 1);
  EXPECT_EQ(steps_with(*limited, "softmax"), 0);
  const auto inputs = inputs_of(*free, 1);
  EXPECT_LT(difference(run(*limited, inputs)[0], run(*free, inputs)[0]), 1e-6);
}

TEST(Attention, TrainsAsTheReferenceDoes) {
  for (std::uint64_t seed = 20; seed < 32; ++seed) {
    const Form form = random_form(seed);
    SCOPED_TRACE(to_string(form));
    const GraphAtBatch step = training(model_of(form));
    const auto cpu =
        target::find_target("cpu").compile(step, {.batch = 4, .micro_batch = seed % 2 ? 2 : 4, .threads = 2});
    const auto reference = target::find_target("reference").compile(step, {.batch = 4});
    EXPECT_EQ(steps_with(*cpu, "attention, "), 1);
    EXPECT_EQ(steps_with(*cpu, "attention gradient"), 1);
    EXPECT_EQ(steps_with(*cpu, "softmax"), 0);
    EXPECT_EQ(steps_with(*cpu, "random mask"), 0) << "the drop mask is never made as a whole";
    EXPECT_EQ(steps_with(*cpu, "reference"), 0);
    const auto inputs = inputs_of(*cpu, seed);
    std::map<std::string, Tensor> before;
    for (const std::string& name : cpu->state_names()) before.emplace(name, cpu->state(name));
    EXPECT_LT(difference(run(*cpu, inputs)[0], run(*reference, inputs)[0]), 1e-5) << "loss";
    for (const auto& [name, start] : before) {
      if (name == "counter") continue;
      // The step taken, not the parameter, which hardly moves.
      Tensor moved(ElementType::f32, start.shape()), expected(ElementType::f32, start.shape());
      for (std::int64_t i = 0; i < start.element_count(); ++i) {
        moved.set(i, cpu->state(name).at(i) - start.at(i));
        expected.set(i, reference->state(name).at(i) - start.at(i));
      }
      EXPECT_LT(difference(moved, expected), 2e-3) << name;
    }
  }
}

TEST(Attention, ComputesInBfloat16) {
  for (std::uint64_t seed = 40; seed < 46; ++seed) {
    Form form = random_form(seed);
    form.size = 16;
    SCOPED_TRACE(to_string(form));
    const GraphAtBatch model = [form](std::int64_t batch) {
      return transform::autocast(attention_model(batch, form), ElementType::bf16, {.least_width = 1});
    };
    const auto cpu = target::find_target("cpu").compile(model, {.batch = 2});
    const auto exact = target::find_target("reference").compile(model_of(form), {.batch = 2});
    EXPECT_EQ(steps_with(*cpu, "attention, "), 1);
    const auto inputs = inputs_of(*cpu, seed);
    EXPECT_LT(difference(run(*cpu, inputs)[0], run(*exact, inputs)[0]), 0.03);
    const auto trained = target::find_target("cpu").compile(training(model), {.batch = 2});
    EXPECT_EQ(steps_with(*trained, "attention gradient"), 1);
    const auto trained_exactly =
        target::find_target("reference").compile(training(model_of(form)), {.batch = 2});
    const auto batch = inputs_of(*trained, seed);
    EXPECT_LT(difference(run(*trained, batch)[0], run(*trained_exactly, batch)[0]), 0.03);
  }
}

// What somebody else reads must be there: then the parts run one by one.
TEST(Attention, LeavesWeightsThatAreRead) {
  Form form{.masking = Masking::padding};
  form.keeps_weights = true;
  const auto cpu = target::find_target("cpu").compile(model_of(form), {.batch = 2});
  const auto reference = target::find_target("reference").compile(model_of(form), {.batch = 2});
  EXPECT_EQ(steps_with(*cpu, "attention"), 0);
  EXPECT_EQ(steps_with(*cpu, "softmax"), 1);
  const auto inputs = inputs_of(*cpu, 1);
  const auto actual = run(*cpu, inputs), expected = run(*reference, inputs);
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_LT(difference(actual[i], expected[i]), 2e-5);
}

// Scores that stay in the second-level cache are left there, where no mask makes for more passes.
TEST(Attention, ShortOnesWithoutMasksStayInParts) {
  const auto steps = [](const Form& form, std::int64_t batch) {
    return steps_with(*target::find_target("cpu").compile(model_of(form), {.batch = batch}), "attention");
  };
  EXPECT_EQ(steps({.length = 64}, 1), 0);
  EXPECT_EQ(steps({.length = 64, .masking = Masking::padding}, 1), 1);
  EXPECT_EQ(steps({.length = 300}, 1), 1);
}

// 2048 positions: one matrix of scores would take 16.8 MB a head, the whole plan takes a fraction of it. The
// rows that are checked are computed by the definition.
TEST(Attention, LongSequencesKeepNoScores) {
  const std::int64_t length = 2048, size = 16;
  const GraphAtBatch model = [=](std::int64_t batch) {
    graph::Graph graph("long");
    op::Builder b(graph);
    const Var q = b.input("q", ElementType::f32, {batch, length, size});
    const Var k = b.input("k", ElementType::f32, {batch, length, size});
    const Var v = b.input("v", ElementType::f32, {batch, length, size});
    b.output("y", op::matmul(op::softmax(op::matmul(q, op::transpose(k, {0, 2, 1})), -1), v));
    return graph;
  };
  const auto cpu = target::find_target("cpu").compile(model, {.batch = 1});
  const std::size_t scores = static_cast<std::size_t>(length * length) * sizeof(float);
  EXPECT_LT(cpu->summary().activation_bytes, scores / 20);
  const auto inputs = inputs_of(*cpu, 1);
  const Tensor y = run(*cpu, inputs)[0];
  for (const std::int64_t row : {std::int64_t{0}, std::int64_t{777}, length - 1}) {
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t key = 0; key < length; ++key) {
      double score = 0;
      for (std::int64_t d = 0; d < size; ++d)
        score += inputs[0].at(row * size + d) * inputs[1].at(key * size + d);
      sum += weights.emplace_back(std::exp(score));
    }
    for (std::int64_t d = 0; d < size; ++d) {
      double expected = 0;
      for (std::int64_t key = 0; key < length; ++key)
        expected += weights[static_cast<std::size_t>(key)] * inputs[2].at(key * size + d);
      ASSERT_NEAR(y.at(row * size + d), expected / sum, 1e-5) << row << " " << d;
    }
  }

  Form form{.length = length, .heads = 1, .size = 8};
  const auto trained = target::find_target("cpu").compile(training(model_of(form)), {.batch = 1});
  EXPECT_LT(trained->summary().activation_bytes, scores / 10);
}

}  // namespace
}  // namespace superstep
