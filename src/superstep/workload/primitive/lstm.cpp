#include "superstep/workload/primitive/lstm.h"

#include <fmt/format.h>

#include <array>

#include "superstep/op/move/movement.h"
#include "superstep/workload/layers.h"

namespace superstep::workload {
namespace {

// Samples come first outside; steps come first in ONNX's recurrent operators.
Var sequence_input(Builder& b, std::int64_t batch, std::int64_t steps, std::int64_t inputs) {
  return op::transpose(b.input("x", ElementType::f32, {batch, steps, inputs}), {1, 0, 2});
}

graph::Graph build(std::int64_t batch, const Options& options, std::uint64_t seed) {
  graph::Graph graph("lstm");
  Builder b(graph);
  Layers layers(b, seed);
  const std::int64_t units = options.integer("units", 1, 8192), depth = options.integer("layers", 1, 16);
  Var states =
      sequence_input(b, batch, options.integer("steps", 1, 65536), options.integer("inputs", 1, 65536));
  Var last;
  for (std::int64_t i = 1; i <= depth; ++i) {
    const Layers::Sequence sequence = layers.lstm(states, fmt::format("lstm{}", i), units);
    states = sequence.states;
    last = sequence.last;
  }
  b.output("y", layers.dense(last, "fc", 1));
  return graph;
}

struct RnnKernel {
  std::int64_t steps, batch, inputs, hidden;
};
constexpr std::array<RnnKernel, 4> kernels = {
    RnnKernel{50, 64, 256, 256}, {25, 32, 512, 512}, {25, 16, 512, 512}, {50, 32, 512, 512}};

template <std::size_t number>
graph::Graph build_kernel(std::int64_t batch, const Options&, std::uint64_t seed) {
  constexpr RnnKernel kernel = kernels[number];
  graph::Graph graph(fmt::format("rnn-k{}", number + 1));
  Builder b(graph);
  Layers layers(b, seed);
  const Var x = sequence_input(b, batch, kernel.steps, kernel.inputs);
  b.output("y", layers.lstm(x, "lstm", kernel.hidden).last);
  return graph;
}

TrainingDefaults mse_by_adam(std::int64_t batch, double epochs) {
  return {.batch = batch,
          .epochs = epochs,
          .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
          .optimizer = {.kind = transform::OptimizerKind::adam},
          .learning_rate = 1e-3};
}

}  // namespace

Workload lstm() {
  return {
      .name = "lstm",
      .summary = "the frequency of a noisy oscillation, by two LSTM layers of 128 units over 50 steps",
      .options = {{"steps", "50", "steps of a sequence"},
                  {"inputs", "32", "values of a step"},
                  {"units", "128", "of each layer"},
                  {"layers", "2", "one after the other"}},
      .build = build,
      .parameters = 82944 + 132096 + 129,  // 4 * 128 * (inputs + 128 + 2) a layer, and the dense one
      .inputs = {{"x", ElementType::f32, {50, 32}, "", "steps of what 32 sensors see"}},
      .outputs = {{"y", ElementType::f32, {1}, "", "periods in the whole sequence, divided by 5"}},
      .targets = {{"target", ElementType::f32, {1}, "", "periods in the whole sequence, divided by 5"}},
      .training = mse_by_adam(32, 10),
      .metrics = {{"rmse", ""}},
      // A tenth of a period in the whole sequence, an eleventh of what the mean frequency is off. The model
      // is there for its throughput and nothing is published of its quality: this shows that it learns. A
      // sinusoid fitted by least squares, which knows the shape, is 25 times nearer than that.
      .target = QualityTarget{.metric = "rmse", .value = 0.02},
  };
}

Workload rnn_kernel(int number) {
  const BuildModel builders[] = {build_kernel<0>, build_kernel<1>, build_kernel<2>, build_kernel<3>};
  const auto index = static_cast<std::size_t>(number - 1);
  const RnnKernel& kernel = kernels.at(index);
  return {
      .name = fmt::format("rnn-k{}", number),
      .summary = fmt::format("one LSTM of {} units over {} steps, on random data: throughput alone",
                             kernel.hidden, kernel.steps),
      .options = {},
      .build = builders[index],
      .parameters = 4 * kernel.hidden * (kernel.inputs + kernel.hidden + 2),
      .inputs = {{"x", ElementType::f32, {kernel.steps, kernel.inputs}, "", "random numbers"}},
      .outputs = {{"y", ElementType::f32, {kernel.hidden}, "", "the last hidden state"}},
      .targets = {{"target", ElementType::f32, {kernel.hidden}, "", "random numbers"}},
      .training = mse_by_adam(kernel.batch, 1),
      .metrics = {},
      .target = std::nullopt,
  };
}

}  // namespace superstep::workload
