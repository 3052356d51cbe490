// What data are scaled by is the run's: training on raw numbers gives the bits of training on scaled ones,
// and whoever asks the model later gives it raw ones, too.
#include <gtest/gtest.h>

#include <fstream>

#include "superstep/run/model.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/user/arrays.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/onnx/proto_builder.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace on = onnx::testing;
using test::expect_same_states;
using test::newest_checkpoint;

class ScaledRuns : public testing::Test {
 protected:
  void SetUp() override {
    const on::GraphParts parts{.nodes = {on::node("MatMul", {"x", "A"}, {"y"})},
                               .inputs = {on::port("x", on::f32, {"N", "4"})},
                               .outputs = {on::port("y", on::f32, {"N", "3"})},
                               .initializers = {on::floats("A", {4, 3}, std::vector<float>(12, 0.5f))}};
    std::ofstream(folder / "model.onnx", std::ios::binary) << on::model_bytes(on::graph(parts));
    Tensor counts(ElementType::u16, {samples, 4}), x(ElementType::f32, {samples, 4});
    Tensor raw(ElementType::f32, {samples, 3}), target(ElementType::f32, {samples, 3});
    for (std::int64_t i = 0; i < 4 * samples; ++i) {
      counts.set(i, static_cast<double>(i * 7919 % 65536));
      x.set(i, 0.001 * counts.at(i) - 3);
    }
    for (std::int64_t i = 0; i < 3 * samples; ++i) {
      raw.set(i, static_cast<double>(i * 31 % 97) / 7);
      target.set(i, raw.at(i) * 0.25);
    }
    write_arrays(folder / "raw.npz", {{"x", counts}, {"target", raw}});
    write_arrays(folder / "scaled.npz", {{"x", x}, {"target", target}});
    write_arrays(folder / "inputs.npz", {{"x", counts}});
    write_arrays(folder / "scaled_inputs.npz", {{"x", x}});
  }

  TrainSettings settings(const char* data) const {
    return {.workload = (folder / "model.onnx").string(),
            .data = folder / data,
            .batch = 8,
            .replicas = 2,
            .epochs = 3,
            .learning_rate = 0.01};
  }
  TrainSettings scaled() const {
    TrainSettings raw = settings("raw.npz");
    raw.scale = {"x=0.001", "target=0.25"};
    raw.offset = {"x=-3"};
    return raw;
  }
  Tensor asked(const char* run, const char* input, std::vector<std::string> scale = {}) {
    infer({.workload = (folder / "model.onnx").string(),
           .weights = folder / run,
           .input = folder / input,
           .scale = std::move(scale),
           .output = folder / "y.npz"});
    return read_arrays(folder / "y.npz").at("y");
  }

  static constexpr std::int64_t samples = 60;
  const ScratchFolder folder;
};

TEST_F(ScaledRuns, TrainToTheBitsOfScaledData) {
  train(settings("scaled.npz"), {.out = folder / "plain", .data_memory = 1e9});
  train(scaled(), {.out = folder / "held", .data_memory = 1e9});
  train(scaled(), {.out = folder / "read", .data_memory = 1, .data_threads = 3});
  const Checkpoint expected = newest_checkpoint(folder / "plain");
  expect_same_states(newest_checkpoint(folder / "held"), expected);
  expect_same_states(newest_checkpoint(folder / "read"), expected);
}

TEST_F(ScaledRuns, AreAskedWithRawNumbers) {
  train(settings("scaled.npz"), {.out = folder / "plain"});
  train(scaled(), {.out = folder / "run"});
  const Tensor expected = asked("plain", "scaled_inputs.npz");
  const auto expect_same = [&](const Tensor& found) {
    ASSERT_EQ(found.shape(), expected.shape());
    EXPECT_EQ(std::memcmp(found.bytes(), expected.bytes(), expected.byte_count()), 0);
  };
  // Without the targets, which only the run names.
  expect_same(asked("run", "inputs.npz"));
  // Said anew for an array, that takes the place of the run's, offset and all.
  expect_same(asked("run", "scaled_inputs.npz", {"x=1"}));
  expect_error(ErrorCode::not_found, {"'none'"}, [&] { asked("run", "inputs.npz", {"none=2"}); });
}

TEST_F(ScaledRuns, WhatIsNotReadOrNotHeededIsRefused) {
  TrainSettings other = settings("raw.npz");
  other.scale = {"none=2"};
  expect_error(ErrorCode::not_found, {"none", "target"}, [&] { train(other, {}); });
  // There, but nothing of the model's.
  NamedTensors arrays = read_arrays(folder / "raw.npz");
  arrays.emplace("time", Tensor(ElementType::f32, {samples}));
  write_arrays(folder / "more.npz", arrays);
  other.data = folder / "more.npz";
  other.scale = {"time=2"};
  expect_error(ErrorCode::invalid_argument, {"'time'", "is not read by the model"},
               [&] { train(other, {}); });
  TrainSettings generated{.workload = "mlp", .scale = {"x=2"}, .samples = 640};
  expect_error(ErrorCode::invalid_argument, {"these are generated"}, [&] { train(generated, {}); });
}

// A workload's own fields, by their names; one whose data are read by rules of its own refuses.
TEST_F(ScaledRuns, OfAWorkloadOfTheZoo) {
  Tensor image(ElementType::u16, {40, 3, 32, 32}), scaled(ElementType::u8, {40, 3, 32, 32}),
      label(ElementType::i64, {40});
  for (std::int64_t i = 0; i < image.element_count(); ++i) {
    image.set(i, static_cast<double>(i * 7919 % 121));
    scaled.set(i, 2 * image.at(i) + 5);
  }
  for (std::int64_t i = 0; i < 40; ++i) label.set(i, static_cast<double>(i % 10));
  write_arrays(folder / "raw.npz", {{"image", image}, {"label", label}});
  write_arrays(folder / "scaled.npz", {{"image", scaled}, {"label", label}});
  TrainSettings run{.workload = "cifar10-cnn", .data = folder / "scaled.npz", .batch = 8, .steps = 3};
  train(run, {.out = folder / "plain"});
  run.data = folder / "raw.npz";
  run.scale = {"image=2"};
  run.offset = {"image=5"};
  train(run, {.out = folder / "run"});
  expect_same_states(newest_checkpoint(folder / "run"), newest_checkpoint(folder / "plain"));
  NamedTensors atoms{{"patch", Tensor(ElementType::f32, {20, 1, 13, 13})},
                     {"ploc", Tensor(ElementType::f32, {20, 2})}};
  write_arrays(folder / "peaks.npz", atoms);
  TrainSettings other{.workload = "braggnn", .data = folder / "peaks.npz", .scale = {"patch=2"}};
  expect_error(ErrorCode::unsupported, {"braggnn", "which scale nothing", "convert"},
               [&] { train(other, {}); });
}

}  // namespace
}  // namespace superstep::run
