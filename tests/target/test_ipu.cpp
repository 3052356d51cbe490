// Graphs on the bulk-synchronous machine, vertex by vertex, against the reference evaluation.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/op/rows/reduction.h"
#include "superstep/target/ipu/cut/cut.h"
#include "superstep/target/ipu/ipu.h"
#include "superstep/target/ipu/lower/prepare.h"
#include "superstep/target/ipu/lower/timed.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using target::Executable;
using target::GraphAtBatch;
using test::expect_close;
using test::inputs_of;
using test::outputs_of;

// Numbers of a vocabulary, and which of them there are: random reals would all be token 0.
void set_tokens(const Executable& executable, std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = executable.inputs()[i].name;
    if (name != "input_ids" && name != "attention_mask") continue;
    for (std::int64_t t = 0; t < inputs[i].element_count(); ++t)
      inputs[i].set(t, name == "attention_mask" ? t % 5 != 4 : static_cast<double>((7 * t + 3) % 50));
  }
}

struct Case {
  const char* name;
  GraphAtBatch model;
};

std::vector<Case> models() {
  return {{"attention", [](std::int64_t batch) { return test::attention_network(batch); }},
          {"mlp", [](std::int64_t batch) { return test::perceptron(batch); }},
          {"pooled", [](std::int64_t batch) { return test::pooled_network(batch); }}};
}

GraphAtBatch training(const GraphAtBatch& model, transform::OptimizerKind kind) {
  return [=](std::int64_t batch) {
    return transform::make_training_step(model(batch), {}, transform::OptimizerSpec{.kind = kind}, {});
  };
}

// Runs both for a few steps. A part rounds only its results, as the reference does: the same bits where no
// sum is divided, one rounding more a partial sum where one is. `but` has no gradient beyond rounding, which
// Adam divides by its own size.
void expect_as_reference(const GraphAtBatch& model, const std::string& name, const char* machine, int steps,
                         double tolerance = 1e-6, std::string_view but = "none") {
  const auto ipu = target::find_target(machine).compile(model, {.batch = 4, .threads = 2});
  const auto reference = target::find_target("reference").compile(model, {.batch = 4});
  auto inputs = inputs_of(*ipu);
  set_tokens(*ipu, inputs);
  auto actual = outputs_of(*ipu), expected = outputs_of(*reference);
  for (int i = 0; i < steps; ++i) {
    ipu->run(inputs, actual);
    reference->run(inputs, expected);
    for (std::size_t o = 0; o < actual.size(); ++o)
      expect_close(actual[o], expected[o], tolerance, name + " output " + std::to_string(o));
  }
  for (const std::string& state : ipu->state_names())
    if (!state.ends_with(but))
      expect_close(ipu->state(state), reference->state(state), tolerance, name + " " + state);
}

TEST(IpuTarget, InfersAsTheReferenceDoes) {
  for (const Case& test : models())
    for (const char* machine : {"gc200", "gc2"}) expect_as_reference(test.model, test.name, machine, 1);
}

TEST(IpuTarget, TrainsAsTheReferenceDoes) {
  for (const Case& test : models())
    for (const auto kind : {transform::OptimizerKind::sgd, transform::OptimizerKind::adam,
                            transform::OptimizerKind::adamax, transform::OptimizerKind::rmsprop})
      expect_as_reference(training(test.model, kind), test.name, "gc200", 3, 1e-5, "phi.bias");
}

// One state read after its new value is made, one through a view of it, one that becomes the other, and one
// that nothing reads again: the last alone may be written where it lies.
graph::Graph late_readers(std::int64_t batch) {
  graph::Graph graph("late readers");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {batch, 8});
  const auto state = [&](const char* name, std::uint64_t seed) {
    return b.state(name, test::random_tensor(ElementType::f32, {batch, 8}, seed));
  };
  const op::Var read = state("read", 1), seen = state("seen", 2), handed = state("handed", 3),
                given = state("given", 4), alone = state("alone", 5);
  const op::Var view = op::reshape(seen, {8, batch});
  b.update(alone, alone * 0.5 + x);
  b.update(read, read + x);
  b.update(seen, seen - x);
  b.update(handed, handed * x);
  b.update(given, handed);
  b.output("y", read * 2.0 + op::reshape(view, {batch, 8}) * 3.0);
  return graph;
}

// A model of one batch alone, as a file is that fixes it: nobody asks for it at another one.
TEST(IpuTarget, RunsAModelThatHasOneBatch) {
  const GraphAtBatch fixed = [](std::int64_t batch) {
    if (batch != 4) throw Error(ErrorCode::invalid_argument, "it has a batch of 4 alone");
    return test::perceptron(batch);
  };
  const auto ipu = target::find_target("gc200").compile(fixed, {.batch = 4, .micro_batch = 4});
  const auto reference = target::find_target("reference").compile(fixed, {.batch = 4, .micro_batch = 4});
  const auto inputs = inputs_of(*ipu);
  auto found = outputs_of(*ipu), expected = outputs_of(*reference);
  ipu->run(inputs, found);
  reference->run(inputs, expected);
  for (std::size_t i = 0; i < found.size(); ++i) expect_close(found[i], expected[i], 1e-6, "output");
}

TEST(IpuTarget, StatesKeepTheirOldValuesForLaterReaders) {
  expect_as_reference(late_readers, "late readers", "gc200", 3);
}

// An optimiser writes states and its buffers where they lie: a step has no copies of them.
TEST(IpuTarget, WritesStatesInPlace) {
  const graph::Graph step = target::ipu::prepare_for_tiles(training(
      [](std::int64_t batch) { return test::perceptron(batch); }, transform::OptimizerKind::adam)(4));
  std::size_t updates = 0;
  for (const graph::Update& update : step.updates()) updates += update.next.valid();
  ASSERT_GT(updates, 6u);
  const bsp::Profile profile = target::ipu::timed_profile(step, "gc200");
  for (const bsp::StepProfile& one : profile.compilation.steps)
    if (one.kind == bsp::ProgramKind::copy) ADD_FAILURE() << one.name;
}

GraphAtBatch zoo(const char* name, std::vector<std::string> options = {}) {
  return [=](std::int64_t batch) {
    return workload::build_model(workload::find_workload(name), batch, options);
  };
}

TEST(IpuTarget, RunsModelsOfTheZoo) {
  expect_as_reference(zoo("braggnn"), "braggnn", "gc200", 1);
  expect_as_reference(zoo("uno", {"width=24"}), "uno", "bow", 1);
  expect_as_reference(zoo("unet-64", {"size=16", "width=4"}), "unet", "gc200", 1);
  expect_as_reference(zoo("lstm", {"steps=3", "inputs=5", "units=8"}), "lstm", "gc200", 1);
}

// The same architectures as those that users run, small. Tokens are numbers of a vocabulary.
TEST(IpuTarget, RunsASmallPtychoNN) {
  expect_as_reference(zoo("ptychonn-64", {"window=16"}), "ptychonn", "gc200", 1);
}
TEST(IpuTarget, RunsASmallMobileNet) {
  expect_as_reference(zoo("mobilenet-v3-small", {"size=32", "classes=10"}), "mobilenet", "gc200", 1);
}
TEST(IpuTarget, RunsASmallResNet) {
  expect_as_reference(zoo("resnet50", {"size=32", "width=4", "classes=10", "zero-last=no"}), "resnet",
                      "gc200", 1);
}
TEST(IpuTarget, RunsASmallBert) {
  expect_as_reference(zoo("bert-small", {"layers=1", "width=16", "heads=2", "length=8", "vocabulary=64"}),
                      "bert", "gc200", 1);
}

TEST(IpuTarget, TellsTheTimeOfItsMachine) {
  const auto ipu = target::find_target("gc200").compile(test::perceptron, {.batch = 4});
  const auto inputs = inputs_of(*ipu);
  auto outputs = outputs_of(*ipu);
  ASSERT_TRUE(ipu->modelled_time());
  EXPECT_EQ(ipu->modelled_time()->runs, 0u);
  ipu->run(inputs, outputs);
  const double once = ipu->modelled_time()->seconds;
  EXPECT_GT(once, 1e-7);
  EXPECT_LT(once, 1e-3);
  ipu->run(inputs, outputs);
  EXPECT_EQ(ipu->modelled_time()->runs, 2u);
  EXPECT_DOUBLE_EQ(ipu->modelled_time()->seconds, 2 * once);
  EXPECT_FALSE(target::find_target("reference").compile(test::perceptron, {.batch = 4})->modelled_time());
}

// The control: a state that differs shows.
TEST(IpuTarget, AStateThatDiffersIsNoticed) {
  const Case test = models()[1];
  const auto ipu = target::find_target("bow").compile(test.model, {.batch = 4});
  const auto inputs = inputs_of(*ipu);
  auto before = outputs_of(*ipu), after = outputs_of(*ipu);
  ipu->run(inputs, before);
  const std::string name = ipu->state_names()[0];
  Tensor changed = ipu->state(name);
  changed.set(0, changed.at(0) + 1);
  ipu->set_state(name, changed);
  EXPECT_EQ(ipu->state(name).at(0), changed.at(0));
  ipu->run(inputs, after);
  double difference = 0;
  for (std::int64_t i = 0; i < before[0].element_count(); ++i)
    difference += std::abs(before[0].at(i) - after[0].at(i));
  EXPECT_GT(difference, 1e-6);
}

TEST(IpuTarget, SpreadsOverManyTiles) {
  const auto ipu = target::find_target("gc200").compile(models()[0].model, {.batch = 4});
  const bsp::Profile& profile = *target::ipu::profile_of(*ipu);
  std::uint64_t most = 0;
  for (const bsp::StepProfile& step : profile.compilation.steps) most = std::max(most, step.compute_tiles);
  EXPECT_GE(most, 64u);
  for (const bsp::VertexKindProfile& kind : profile.compilation.vertex_kinds)
    EXPECT_FALSE(kind.default_estimate) << kind.name;
  EXPECT_EQ(
      target::ipu::profile_of(*target::find_target("reference").compile(models()[1].model, {.batch = 1})),
      nullptr);
}

TEST(IpuTarget, EveryOperatorOfTheModelsIsCut) {
  for (const Case& test : models()) {
    const auto ipu = target::find_target("gc200").compile(
        training(test.model, transform::OptimizerKind::adam), {.batch = 4});
    for (const target::PlanStep& step : ipu->summary().steps)
      for (const std::string& refusal : step.refusals)
        if (!step.op.starts_with("Reduce") && step.op != "SoftmaxCrossEntropyLoss") {
          EXPECT_EQ(refusal.find("no rule"), std::string::npos) << step.op << ": " << refusal;
        }
  }
}

TEST(IpuTarget, NamesWhatATileDoesNotHave) {
  const GraphAtBatch doubles = [](std::int64_t batch) {
    graph::Graph graph("doubles");
    op::Builder b(graph);
    b.output("y", op::relu(b.input("x", ElementType::f64, {batch, 2})));
    return graph;
  };
  try {
    target::find_target("gc200").compile(doubles, {.batch = 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_TRUE(contains(error.what(), "value x: a tile does not have f64"));
  }
}

TEST(IpuTarget, TooLargeIsAnAnswer) {
  const GraphAtBatch large = [](std::int64_t batch) {
    graph::Graph graph("large");
    op::Builder b(graph);
    b.output("y", op::relu(b.input("x", ElementType::f32, {batch, 300000000})));
    return graph;
  };
  for (const std::int64_t batch : {1, 2}) try {
      target::find_target("gc200").compile(large, {.batch = batch});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
      EXPECT_TRUE(contains(error.what(), "tiles are too full"));
      EXPECT_TRUE(contains(error.what(), "variable 'x'"));
      for (const char* help : {"--pipeline auto", "--recompute"}) EXPECT_TRUE(contains(error.what(), help));
      // One sample cannot be divided.
      for (const char* help : {"smaller batch", "--accumulate"})
        EXPECT_EQ(contains(error.what(), help), batch > 1) << help;
    }
}

}  // namespace
}  // namespace superstep
