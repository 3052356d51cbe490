// Software that drives a machine, and collectives over many units: what must change with what.
#include <gtest/gtest.h>

#include "superstep/machine/collective.h"
#include "superstep/machine/predict.h"
#include "superstep/machine/scaling.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"

namespace superstep::machine {
namespace {

graph::Graph training_step(const std::string& name, std::int64_t batch) {
  const workload::Workload& workload = workload::find_workload(name);
  return transform::make_training_step(workload::build_model(workload, batch), workload.training.loss,
                                       workload.training.optimizer);
}

PredictSettings settings(std::int64_t batch, const char* precision = "f16") {
  return {.precision = precision_from_name(precision), .micro_batch = batch, .pipeline = {}};
}

std::string refusal(const std::string& text) {
  try {
    parse_machine(text, "test.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// A file that is another machine, with stacks of its own.
std::string with_stacks(const std::string& stacks) {
  return "id = \"mine\"\nname = \"Mine\"\nstyle = \"kernel-by-kernel\"\nbased_on = "
         "\"gaudi1\"\n[constants]\n" +
         stacks;
}

constexpr const char* launch =
    "launch = { value = 1e-3, unit = \"s\", kind = \"GU\", source = \"\", range = [1e-4, 1e-2] }\n";

TEST(Stacks, AreReadFromFilesAndInherited) {
  const Machine machine =
      parse_machine(with_stacks(std::string("[stacks.pytorch-eager]\n") + launch), "test");
  EXPECT_TRUE(machine.has_stack("pytorch-eager"));
  EXPECT_EQ(machine.stack(), nullptr);
  const Machine driven = machine.driven_by("pytorch-eager");
  ASSERT_NE(driven.stack(), nullptr);
  EXPECT_EQ(driven.stack()->value("launch"), 1e-3);
  EXPECT_EQ(driven.stack()->value("matrix_share"), 1);  // what is not said adds nothing
  EXPECT_NE(driven.digest(), machine.digest());
  EXPECT_EQ(driven.with("launch", 2e-3).stack()->value("launch"), 2e-3);
  EXPECT_THROW(machine.with("launch", 2e-3), Error);  // nothing drives it
  for (const char* heir : {"v100", "t4", "a100-80gb", "l40s", "h100", "h200", "b200"})
    EXPECT_TRUE(find_machine(heir).has_stack("pytorch-eager")) << heir;
}

TEST(Stacks, NumbersOfTheStyleTakeTheMachinesPlace) {
  const Machine machine = find_machine("gc200"), driven = machine.driven_by("poplar");
  EXPECT_LT(driven.value("host_call"), machine.value("host_call"));
  EXPECT_EQ(driven.with("host_call", 1).value("host_call"), 1);
}

TEST(Stacks, DamagedOnesAreRefused) {
  EXPECT_TRUE(contains(refusal(with_stacks("[stacks.pytorch]\n")), "stacks.pytorch: is not a key"))
      << refusal(with_stacks("[stacks.pytorch]\n"));
  EXPECT_TRUE(
      contains(refusal(with_stacks("[stacks.pytorch-amp]\nclock = { value = 1 }\n")), "is not a key"));
  EXPECT_TRUE(contains(refusal(with_stacks("[stacks.pytorch-amp]\nlaunch = 3\n")), "must be a table"));
  EXPECT_TRUE(contains(refusal(with_stacks("stacks = 3\n")), "constants.stacks"));
  EXPECT_TRUE(contains(refusal("stacks_of = \"none\"\n" + with_stacks("")), "there is no machine 'none'"));
  EXPECT_THROW(find_machine("a100-40gb").driven_by("poplar"), Error);
}

TEST(Stacks, ManySmallOperatorsWaitForTheirLaunches) {
  const Machine library = find_machine("a100-40gb"), eager = library.driven_by("pytorch-eager");
  const graph::Graph small = training_step("braggnn", 1), large = training_step("cifar10-cnn", 4096);
  const auto slower = [&](const graph::Graph& step, std::int64_t batch) {
    return predict(eager, step, settings(batch, "tf32")).step_seconds /
           predict(library, step, settings(batch, "tf32")).step_seconds;
  };
  EXPECT_GT(slower(small, 1), 2);
  EXPECT_LT(slower(large, 4096), 2);
  EXPECT_STREQ(predict(eager, small, settings(1, "tf32")).step.largest(), "launch");
}

TEST(Stacks, TwiceTheLaunchIsTwiceTheTimeOfWhatIsBoundByIt) {
  const Machine eager = find_machine("a100-40gb").driven_by("pytorch-eager");
  const graph::Graph model = workload::build_model(workload::find_workload("braggnn"), 1);
  const auto seconds = [&](double factor) {
    return predict(eager.with("launch", factor * eager.stack()->value("launch")), model, settings(1, "tf32"))
        .step_seconds;
  };
  EXPECT_NEAR(seconds(2) / seconds(1), 2, 1e-9);
}

TEST(Stacks, LoadersThatDoNotReadAheadKeepTheMachineWaiting) {
  const Machine eager = find_machine("a100-40gb").driven_by("pytorch-eager");
  const graph::Graph step = training_step("cifar10-cnn", 512);
  const Prediction waits = predict(eager, step, settings(512, "tf32"));
  const Prediction ahead = predict(eager.with("reads_ahead", 1), step, settings(512, "tf32"));
  EXPECT_NEAR(waits.step_seconds_with_data, waits.host.without_loader(waits.step_seconds) + waits.host.loader,
              1e-12);
  EXPECT_LT(ahead.step_seconds_with_data, waits.step_seconds_with_data);
  PredictSettings files = settings(512, "tf32");
  files.samples_in_files = true;
  EXPECT_NEAR(predict(eager, step, files).host.loader - waits.host.loader,
              512 * eager.stack()->value("host_decode"), 1e-9);
}

TEST(Collectives, ClosedForms) {
  EXPECT_DOUBLE_EQ(ring_all_reduce(8e9, 4, 1e9, 1e-3), 2 * 0.75 * 8 + 6e-3);
  EXPECT_DOUBLE_EQ(tree_all_reduce(8e9, 4, 1e9, 1e-3), 2 * 8 + 4e-3);
  const Fabric one{.rate = 1e9, .latency = 1e-3};
  EXPECT_EQ(all_reduce_seconds(8e9, 1, one), 0);
  // Large messages go round, small ones over the tree.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(80e9, 64, one), ring_all_reduce(80e9, 64, 1e9, 1e-3));
  EXPECT_DOUBLE_EQ(all_reduce_seconds(8, 1024, one), tree_all_reduce(8, 1024, 1e9, 1e-3));
}

TEST(Collectives, GroupsShareTheirPartOverTheNetwork) {
  const Fabric pods{
      .group_units = 8, .rate = 1e9, .latency = 1e-6, .network_rate = 1e8, .network_latency = 1e-5};
  EXPECT_DOUBLE_EQ(all_reduce_seconds(8e9, 8, pods), ring_all_reduce(8e9, 8, 1e9, 1e-6));
  EXPECT_DOUBLE_EQ(all_reduce_seconds(8e9, 32, pods),
                   ring_all_reduce(8e9, 8, 1e9, 1e-6) + ring_all_reduce(1e9, 4, 1e8, 1e-5));
  double before = 0;
  for (int units = 2; units <= 4096; units *= 2) {
    const double seconds = all_reduce_seconds(8e9, units, pods);
    EXPECT_GE(seconds, before) << units;
    before = seconds;
  }
}

TEST(ScalingCurves, WeakKeepsAndStrongSharesTheSamples) {
  const Machine machine = find_machine("bow");
  const auto graph_at = [](std::int64_t batch) { return training_step("cifar10-cnn", batch); };
  PredictSettings run = settings(16);
  run.accumulate = 8;
  const auto weak = scaling_of(machine, graph_at, run, 100, Scaling::weak);
  ASSERT_EQ(weak.size(), 8U);  // 1, 2, 4 ... 64, 100
  EXPECT_EQ(weak.back().replicas, 100);
  EXPECT_EQ(weak.back().samples, 100 * 128);
  for (const ScalingPoint& point : weak) EXPECT_LE(point.efficiency, 1 + 1e-12);
  EXPECT_EQ(weak.front().collective_seconds, 0);
  for (std::size_t i = 2; i + 1 < weak.size(); ++i)
    EXPECT_GT(weak[i].collective_seconds, weak[i - 1].collective_seconds) << weak[i].replicas;
  const auto strong = scaling_of(machine, graph_at, run, 4096, Scaling::strong);
  ASSERT_EQ(strong.size(), 8U);  // 128 samples: at most as many replicas
  for (const ScalingPoint& point : strong) EXPECT_EQ(point.samples, 128);
  EXPECT_EQ(strong.back().micro_batch, 1);
  EXPECT_LT(strong.back().efficiency, weak.back().efficiency);
}

TEST(Predict, SaysWhatLiesBeyondTheMeasurements) {
  const graph::Graph step = training_step("mlp", 64);
  PredictSettings many = settings(64);
  many.replicas = 64;
  EXPECT_TRUE(predict(find_machine("gc200"), step, many).beyond.empty());
  many.replicas = 5000;
  EXPECT_EQ(predict(find_machine("gc200"), step, many).beyond.size(), 1U);
}

}  // namespace
}  // namespace superstep::machine
