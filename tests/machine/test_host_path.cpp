// The host's data path: what a fed step takes, what bounds it, and how sure that is.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/machine/host_path.h"
#include "superstep/machine/predict.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"

namespace superstep::machine {
namespace {

graph::Graph training_step(const char* name, std::int64_t batch) {
  const workload::Workload& workload = workload::find_workload(name);
  return transform::make_training_step(workload::build_model(workload, batch), workload.training.loss,
                                       workload.training.optimizer);
}

Prediction predicted(const char* machine, const char* model, std::int64_t batch,
                     const PredictSettings& settings) {
  PredictSettings at_batch = settings;
  at_batch.micro_batch = batch;
  return predict(find_machine(machine), training_step(model, batch), at_batch);
}

constexpr HostWork work{.transfer_bytes = 6e6, .loader_bytes = 4000, .samples = 1000};

TEST(HostPath, IsTheSumOfItsParts) {
  const auto model = cost_model(find_machine("gc200"));
  const HostPath path = host_path(*model, work);
  EXPECT_DOUBLE_EQ(path.link, 10e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(path.call, 300e-6);
  EXPECT_DOUBLE_EQ(path.loader, 1000 * (3e-6 + 2e-6));
  // A copy is a step of the program; the loader works ahead.
  EXPECT_DOUBLE_EQ(path.with(10e-3), 10e-3 + path.link + path.call);
  EXPECT_DOUBLE_EQ(path.with(1e-3), path.loader);
  EXPECT_DOUBLE_EQ(path.without_loader(1e-3), 1e-3 + path.link + path.call);
}

TEST(HostPath, OverlapsWhereTheMachineDoes) {
  HostWork bare = work;
  bare.training = false;
  const HostPath path = host_path(*cost_model(find_machine("a100-40gb")), bare);
  EXPECT_TRUE(path.overlaps);
  EXPECT_EQ(path.loader, 0);
  EXPECT_DOUBLE_EQ(path.with(10e-3), 10e-3);
}

TEST(HostPath, IterationsLoadersAndBytesHelp) {
  const auto seconds = [](int iterations, int loaders, int input_bytes) {
    return predicted(
        "gc200", "mlp", 64,
        {.pipeline = {}, .device_iterations = iterations, .loaders = loaders, .input_bytes = input_bytes});
  };
  const Prediction one = seconds(1, 16, 0), many = seconds(10, 16, 0), alone = seconds(10, 1, 0);
  EXPECT_NEAR(one.step_seconds_with_data - many.step_seconds_with_data, 270e-6, 1e-9);
  EXPECT_EQ(one.step_seconds, many.step_seconds);
  EXPECT_GT(alone.step_seconds_with_data, many.step_seconds_with_data);
  EXPECT_EQ(alone.bound_by_with_data(), "host loader");
  EXPECT_LT(seconds(1, 16, 1).host.link, one.host.link);
}

TEST(HostPath, SlowMachinesAreNotBoundByIt) {
  const Prediction prediction =
      predicted("gc200", "ptychonn-64", 16, {.pipeline = {}, .device_iterations = 100});
  EXPECT_EQ(prediction.bound_by_with_data(), prediction.bound_by());
}

TEST(HostPath, IntervalsHoldTheValueAndGrowWithDoubt) {
  const Machine machine = find_machine("gc200");
  const FedInterval fed = fed_interval(machine, work, 1e-3, 1e-3 * std::exp(-0.6), 1e-3 * std::exp(0.6)),
                    sure = fed_interval(machine, work, 50e-3, 50e-3 * std::exp(-0.6), 50e-3 * std::exp(0.6));
  const double value = host_path(*cost_model(machine), work).with(1e-3);
  EXPECT_LT(fed.low, value);
  EXPECT_GT(fed.high, value);
  // Bound by the loader, whose constants are known to a factor of three, against bound by the machine.
  EXPECT_GT(std::log(fed.high / fed.low), std::log(sure.high / sure.low));
  EXPECT_NEAR(std::log(sure.high / sure.low), 1.2, 0.1);
  EXPECT_LT(fed.low_without_loader, fed.low);
}

TEST(HostPath, WrongSettingsAreRefused) {
  EXPECT_THROW(predicted("gc200", "mlp", 4, {.pipeline = {}, .device_iterations = 0}), Error);
  EXPECT_THROW(predicted("gc200", "mlp", 4, {.pipeline = {}, .loaders = 0}), Error);
}

}  // namespace
}  // namespace superstep::machine
