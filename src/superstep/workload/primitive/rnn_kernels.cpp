// The four LSTM kernels of Emani et al., "A Comprehensive Evaluation of Novel AI Accelerators for Deep
// Learning Workloads" (PMBS 2022), table IX, on random numbers: only throughput counts.
//
// x f32 [N, steps, inputs] -> one LSTM -> y f32 [N, hidden], its last state. Steps, batch, inputs, hidden:
// 50, 64, 256, 256; 25, 32, 512, 512; 25, 16, 512, 512; 50, 32, 512, 512.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/workload/primitive/recurrent.h"
#include "superstep/workload/task.h"

namespace superstep::workload {
namespace {

struct RnnKernel {
  std::int64_t steps, batch, inputs, hidden;
};
constexpr std::array<RnnKernel, 4> rnn_kernels = {
    RnnKernel{50, 64, 256, 256}, {25, 32, 512, 512}, {25, 16, 512, 512}, {50, 32, 512, 512}};

template <std::size_t number>
graph::Graph build_kernel(std::int64_t batch, const Options&, std::uint64_t seed) {
  constexpr RnnKernel kernel = rnn_kernels[number];
  graph::Graph graph(fmt::format("rnn-k{}", number + 1));
  Builder b(graph);
  Layers layers(b, seed);
  const Var x = sequence_input(b, batch, kernel.steps, kernel.inputs);
  b.output("y", layers.lstm(x, "lstm", kernel.hidden).last);
  return graph;
}

constexpr std::int64_t random_samples = 256;
constexpr double random_training_share = 0.8;

class RandomSequenceTask : public Task {
 public:
  explicit RandomSequenceTask(const TaskSettings& settings)
      : seed_(settings.seed), size_(settings.samples > 0 ? settings.samples : random_samples) {
    if (!settings.data.empty())
      throw Error(ErrorCode::unsupported, "this workload makes its own data", settings.data.string(),
                  "leave --data out");
  }

  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override {
    return static_cast<std::int64_t>(random_training_share * static_cast<double>(size_));
  }

  void fill(std::span<const std::int64_t> indices, std::uint64_t, bool,
            std::span<Tensor> tensors) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      RandomStream random(seed_, static_cast<std::uint64_t>(indices[i]));
      for (Tensor& tensor : tensors) {
        const std::size_t row = tensor.as<float>().size() / indices.size();
        for (float& value : tensor.as<float>().subspan(i * row, row))
          value = static_cast<float>(random.uniform(-1, 1));
      }
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t>, std::span<const Tensor>) const override {
    return {};
  }
  bool has_labels() const override { return false; }

  nlohmann::json describe() const override {
    return {{"source", "random numbers: for throughput alone"},
            {"samples", size_},
            {"training", training_count()}};
  }

 private:
  std::uint64_t seed_;
  std::int64_t size_;
};

std::unique_ptr<Task> open_random_sequences(const TaskSettings& settings, const Options&) {
  return std::make_unique<RandomSequenceTask>(settings);
}

Workload rnn_kernel(int number) {
  const BuildModel builders[] = {build_kernel<0>, build_kernel<1>, build_kernel<2>, build_kernel<3>};
  const auto index = static_cast<std::size_t>(number - 1);
  const RnnKernel& kernel = rnn_kernels.at(index);
  return {
      .name = fmt::format("rnn-k{}", number),
      .summary = fmt::format("one LSTM of {} units over {} steps, on random data: throughput alone",
                             kernel.hidden, kernel.steps),
      .options = {},
      .build = builders[index],
      .parameters = 4 * kernel.hidden * (kernel.inputs + kernel.hidden + 2),
      .flops = 8 * kernel.hidden * (kernel.inputs + kernel.hidden) * kernel.steps,
      .inputs = {{"x", ElementType::f32, {kernel.steps, kernel.inputs}, "", "random numbers"}},
      .outputs = {{"y", ElementType::f32, {kernel.hidden}, "", "the last hidden state"}},
      .targets = {{"target", ElementType::f32, {kernel.hidden}, "", "random numbers"}},
      .training = mse_by_adam(kernel.batch, 1),
      .open = open_random_sequences,
      .metrics = {},
      .target = std::nullopt,
  };
}

}  // namespace

Workload rnn_k1() { return rnn_kernel(1); }
Workload rnn_k2() { return rnn_kernel(2); }
Workload rnn_k3() { return rnn_kernel(3); }
Workload rnn_k4() { return rnn_kernel(4); }

}  // namespace superstep::workload
