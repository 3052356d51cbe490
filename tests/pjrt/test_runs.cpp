// Graphs on a device behind a plug-in, here this processor: states, refusals, the zoo beside the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/sends_ahead.h"
#include "superstep/target/target.h"
#include "tests/expect_error.h"
#include "tests/pjrt/plugins.h"
#include "tests/target/zoo_input.h"
#include "tests/target/zoo_models.h"
#include "tests/target/zoo_step.h"

namespace superstep {
namespace {

using target::Executable;

std::vector<Tensor> outputs_of(const Executable& executable) {
  std::vector<Tensor> outputs;
  for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  return outputs;
}

std::vector<Tensor> inputs_of(const Executable& executable) {
  std::vector<Tensor> inputs;
  for (const auto& port : executable.inputs()) inputs.push_back(test::random_input(port, inputs.size() + 1));
  return inputs;
}

struct Runner {
  Runner(const char* name, const target::GraphAtBatch& model, std::int64_t batch)
      : executable(target::find_target(name).compile(model, {.batch = batch, .micro_batch = batch})),
        inputs(inputs_of(*executable)),
        outputs(outputs_of(*executable)) {}
  void run() { executable->run(inputs, outputs); }

  std::unique_ptr<Executable> executable;
  std::vector<Tensor> inputs, outputs;
};

graph::Graph sums(std::int64_t batch) {
  graph::Graph graph("sums");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {batch, 3});
  const op::Var kept = b.state("kept", Tensor::full(ElementType::f32, {3}, 2));
  const op::Var sum = b.state("sum", Tensor(ElementType::f32, {batch, 3}));
  const op::Var next = sum + x * kept;
  b.update(sum, next);
  b.output("y", next);
  return graph;
}

TEST(DeviceStates, StayOnTheDeviceAndCanBeReadAndSet) {
  NEEDS_CPU_PLUGIN();
  Runner runner("pjrt-cpu", sums, 2);
  runner.inputs[0] = Tensor::full(ElementType::f32, {2, 3}, 1.5);
  for (int i = 0; i < 3; ++i) runner.run();
  EXPECT_EQ(runner.outputs[0].at(5), 9);
  EXPECT_EQ(runner.executable->state("sum").at(0), 9);
  EXPECT_EQ(runner.executable->state("kept").at(2), 2);
  runner.executable->set_state("sum", Tensor::full(ElementType::f32, {2, 3}, -1));
  runner.run();
  EXPECT_EQ(runner.outputs[0].at(0), 2);
  expect_error(ErrorCode::invalid_argument, {"sun", "did you mean 'sum'"},
               [&] { runner.executable->state("sun"); });
  expect_error(ErrorCode::invalid_argument, {"state kept", "f32[4]", "f32[3]"},
               [&] { runner.executable->set_state("kept", Tensor(ElementType::f32, {4})); });
  expect_error(ErrorCode::invalid_argument, {"input x"}, [&] {
    runner.inputs[0] = Tensor(ElementType::f32, {3, 3});
    runner.run();
  });
}

// Inputs that went ahead are those of the next run, whatever has become of the others in between.
TEST(DeviceInputs, MayGoAheadOfTheirRun) {
  NEEDS_CPU_PLUGIN();
  Runner ahead("pjrt-cpu", sums, 2), plain("pjrt-cpu", sums, 2);
  std::vector<std::vector<Tensor>> batches;
  for (int i = 0; i < 5; ++i) batches.push_back({Tensor::full(ElementType::f32, {2, 3}, 0.3 * i + 0.1)});
  int asked = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    // The third goes ahead and is not asked for: another comes in its place.
    const std::vector<Tensor> now =
        i == 3 ? std::vector{Tensor::full(ElementType::f32, {2, 3}, 7)} : batches[i];
    target::run_sending_ahead(*ahead.executable, now, ahead.outputs, [&] {
      ++asked;
      return i + 1 < batches.size() ? batches[i + 1] : std::vector<Tensor>();
    });
    plain.executable->run(now, plain.outputs);
    EXPECT_EQ(std::memcmp(ahead.outputs[0].bytes(), plain.outputs[0].bytes(), ahead.outputs[0].byte_count()),
              0);
  }
  EXPECT_EQ(asked, 5);
}

// What goes wrong with the next inputs is told when the run is through: its states are whole.
TEST(DeviceInputs, WhatFailsAheadComesAfterTheRun) {
  NEEDS_CPU_PLUGIN();
  Runner runner("pjrt-cpu", sums, 2);
  runner.inputs[0] = Tensor::full(ElementType::f32, {2, 3}, 1.5);
  expect_error(ErrorCode::io, {"no more data"}, [&] {
    target::run_sending_ahead(*runner.executable, runner.inputs, runner.outputs,
                              []() -> std::vector<Tensor> { throw Error(ErrorCode::io, "no more data"); });
  });
  EXPECT_EQ(runner.outputs[0].at(0), 3);
  expect_error(ErrorCode::invalid_argument, {"input x"}, [&] {
    target::run_sending_ahead(*runner.executable, runner.inputs, runner.outputs,
                              [] { return std::vector{Tensor(ElementType::f32, {1})}; });
  });
  EXPECT_EQ(runner.executable->state("sum").at(0), 6);
}

// Copies, start, computation, copies: one behind the other.
TEST(DevicePhases, AreTimedWhereStepsAreMeasured) {
  NEEDS_CPU_PLUGIN();
  const auto measured =
      target::find_target("pjrt-cpu").compile(sums, {.batch = 2, .micro_batch = 2, .measure_steps = true});
  std::vector<Tensor> inputs = inputs_of(*measured), outputs = outputs_of(*measured);
  measured->run(inputs, outputs);
  const target::Timeline timeline = measured->timeline();
  ASSERT_EQ(timeline.events.size(), 4u);
  double end = 0;
  for (const target::StepEvent& event : timeline.events) {
    EXPECT_DOUBLE_EQ(event.begin, end);
    EXPECT_GE(event.seconds, 0);
    end = event.begin + event.seconds;
  }
  EXPECT_DOUBLE_EQ(end, timeline.seconds);
  EXPECT_TRUE(Runner("pjrt-cpu", sums, 2).executable->timeline().events.empty());
}

// Ten thousand steps in the memory of the first: the device's own count where it keeps one, else the
// process's.
TEST(DeviceStates, TakeNoMoreMemoryFromStepToStep) {
  NEEDS_CPU_PLUGIN();
  const auto model = [](std::int64_t) { return sums(20000); };  // states of 240 kB
  Runner runner("pjrt-cpu", model, 1);
  const auto resident = [] {
    long pages = 0, unused = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    const int read = std::fscanf(file, "%ld %ld", &unused, &pages);
    std::fclose(file);
    return read == 2 ? pages * 4096.0 : 0.0;
  };
  for (int i = 0; i < 200; ++i) runner.run();
  const double before = resident();
  for (int i = 0; i < 2000; ++i) runner.run();
  EXPECT_LT(resident() - before, 50e6);  // 2,000 states that stayed would be 480 MB
}

TEST(DeviceStates, AMemoryLimitIsHeld) {
  NEEDS_CPU_PLUGIN();
  const auto model = [](std::int64_t) { return sums(20000); };
  expect_error(ErrorCode::out_of_memory, {"takes", "the limit is 1 kB", "smaller --batch"},
               [&] { target::find_target("pjrt-cpu").compile(model, {.batch = 1, .memory_limit = 1000}); });
}

graph::Graph looked_up(std::int64_t batch) {
  graph::Graph graph("looked up");
  op::Builder b(graph);
  b.set_name("table");
  const op::Var x = b.input("x", ElementType::i64, {batch});
  const op::Var table = b.state("rows", test::random_input({"t", {ElementType::f32, Shape{8, 2}}}, 3));
  b.output("y", op::gather(table, x));
  return graph;
}

TEST(DeviceRefusals, AnIndexOutOfRangeFailsTheRun) {
  NEEDS_CPU_PLUGIN();
  Runner runner("pjrt-cpu", looked_up, 3);
  runner.inputs[0] = Tensor::from<std::int64_t>({3}, {7, -8, 0});
  runner.run();
  EXPECT_EQ(runner.outputs[0].at(2), runner.executable->state("rows").at(0));
  for (const std::int64_t wrong : {8, -9}) {
    runner.inputs[0] = Tensor::from<std::int64_t>({3}, {7, wrong, 0});
    expect_error(ErrorCode::invalid_argument, {"'table'", "Gather", "outside [-8, 7]"},
                 [&] { runner.run(); });
  }
  runner.inputs[0] = Tensor::from<std::int64_t>({3}, {1, 2, 3});
  runner.run();  // nothing was changed that could be lost
}

// A kernel that rows of a table make, which are looked up where a state says.
graph::Graph made_of_states(std::int64_t batch) {
  graph::Graph graph("made of states");
  op::Builder b(graph);
  b.set_name("lookup");
  const op::Var x = b.input("x", ElementType::f32, {batch, 1, 3, 3});
  const op::Var rows = b.state("rows", Tensor::from<float>({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  const op::Var places = b.state("places", Tensor::from<std::int64_t>({1}, {1}));
  b.output("y", op::conv(x, op::reshape(op::gather(rows, places), {1, 1, 2, 2})));
  return graph;
}

// What follows from states alone is made before the first run, and anew when one of them is set.
TEST(DevicePreparation, FollowsTheStatesThatAreSet) {
  NEEDS_CPU_PLUGIN();
  Runner runner("pjrt-cpu", made_of_states, 2), reference("reference", made_of_states, 2);
  const auto expect_alike = [&] {
    runner.run();
    reference.run();
    for (std::int64_t i = 0; i < 8; ++i)
      EXPECT_NEAR(runner.outputs[0].at(i), reference.outputs[0].at(i), 1e-5) << i;
  };
  const auto set = [&](const char* name, const Tensor& value) {
    for (Runner* each : {&runner, &reference}) each->executable->set_state(name, value);
  };
  expect_alike();
  expect_alike();
  set("places", Tensor::from<std::int64_t>({1}, {2}));
  expect_alike();
  set("rows", Tensor::full(ElementType::f32, {3, 4}, -3));
  expect_alike();
}

TEST(DevicePreparation, IsRefusedWithTheStatesThatItIsMadeOf) {
  NEEDS_CPU_PLUGIN();
  Runner runner("pjrt-cpu", made_of_states, 2);
  runner.executable->set_state("places", Tensor::from<std::int64_t>({1}, {3}));
  for (int i = 0; i < 2; ++i)
    expect_error(ErrorCode::invalid_argument, {"Gather", "outside [-3, 2]"}, [&] { runner.run(); });
  runner.executable->set_state("places", Tensor::from<std::int64_t>({1}, {-3}));
  runner.run();
}

TEST(DeviceTargets, NamesAreThoseOfKindsAndPaths) {
  for (const char* name : {"pjrt", "cuda", "cuda:1", "tpu", "pjrt:/opt/a.so", "pjrt:2"})
    EXPECT_EQ(target::find_target(name).name(), name);
  EXPECT_EQ(&target::find_target("cuda"), &target::find_target("cuda"));
  expect_error(ErrorCode::invalid_argument, {"cuda:x", "cuda:1"}, [] { target::find_target("cuda:x"); });
  expect_error(ErrorCode::invalid_argument, {"cudda", "did you mean 'cuda'"},
               [] { target::find_target("cudda"); });
}

// ---- the zoo, built small

class ZooOnDevice : public ::testing::TestWithParam<test::Model> {};

void expect_close(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what) {
  double scale = 1e-6;
  for (std::int64_t i = 0; i < expected.element_count(); ++i)
    scale = std::max(scale, std::abs(expected.at(i)));
  for (std::int64_t i = 0; i < actual.element_count(); ++i)
    ASSERT_NEAR(actual.at(i), expected.at(i), tolerance * scale) << what << " at " << i;
}

TEST_P(ZooOnDevice, ServesAsTheReferenceDoes) {
  NEEDS_CPU_PLUGIN();
  Runner device("pjrt-cpu", test::serving(GetParam()), GetParam().batch);
  Runner reference("reference", test::serving(GetParam()), GetParam().batch);
  device.run();
  reference.run();
  for (std::size_t i = 0; i < device.outputs.size(); ++i)
    expect_close(device.outputs[i], reference.outputs[i], 1e-4, device.executable->outputs()[i].name);
}

TEST_P(ZooOnDevice, TrainsAsTheReferenceDoes) {
  NEEDS_CPU_PLUGIN();
  Runner device("pjrt-cpu", test::training(GetParam()), GetParam().batch);
  Runner reference("reference", test::training(GetParam()), GetParam().batch);
  test::expect_steps_alike(*device.executable, *reference.executable, GetParam(), device.inputs);
}

INSTANTIATE_TEST_SUITE_P(Models, ZooOnDevice, ::testing::ValuesIn(test::zoo_models()),
                         [](const auto& instance) {
                           std::string name = testing::PrintToString(instance.param);
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name + "_" + std::to_string(instance.index);
                         });

}  // namespace
}  // namespace superstep
