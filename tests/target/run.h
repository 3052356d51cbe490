// Compiled models on random data, and results beside each other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "superstep/target/target.h"
#include "tests/target/models.h"

namespace superstep::test {

// The small models of models.h, by name.
struct Case {
  const char* name;
  target::GraphAtBatch model;
};

inline std::vector<Case> models() {
  return {{"attention", [](std::int64_t batch) { return attention_network(batch); }},
          {"mlp", [](std::int64_t batch) { return perceptron(batch); }},
          {"pooled", [](std::int64_t batch) { return pooled_network(batch); }},
          {"bottleneck", [](std::int64_t batch) { return bottleneck_network(batch); }}};
}

// Random inputs of an executable, from `seed` on; the learning rate is `rate`.
inline std::vector<Tensor> inputs_of(const target::Executable& executable, std::uint64_t seed = 7,
                                     float rate = 0.01f) {
  std::vector<Tensor> inputs;
  for (const target::Executable::Port& port : executable.inputs())
    inputs.push_back(port.name == "learning_rate"
                         ? Tensor::scalar(rate)
                         : random_tensor(port.type.element, port.type.shape, inputs.size() + seed));
  return inputs;
}

inline std::vector<Tensor> outputs_of(const target::Executable& executable) {
  std::vector<Tensor> outputs;
  for (const target::Executable::Port& port : executable.outputs())
    outputs.emplace_back(port.type.element, port.type.shape);
  return outputs;
}

// A model compiled for a target, with the tensors of its ports.
struct Runner {
  Runner(const char* target, const target::GraphAtBatch& model, const target::CompileOptions& options,
         float rate = 0.02f)
      : executable(target::find_target(target).compile(model, options)),
        inputs(inputs_of(*executable, 3, rate)),
        outputs(outputs_of(*executable)) {}

  void run() { executable->run(inputs, outputs); }
  // The steps of the plan that `op` became.
  std::size_t count(std::string_view op) const {
    const auto steps = executable->summary().steps;
    return static_cast<std::size_t>(
        std::ranges::count_if(steps, [&](const target::PlanStep& step) { return step.op == op; }));
  }

  std::unique_ptr<target::Executable> executable;
  std::vector<Tensor> inputs, outputs;
};

// Every element within `tolerance` times the largest expected one.
inline void expect_close(const Tensor& actual, const Tensor& expected, double tolerance,
                         const std::string& name) {
  ASSERT_EQ(actual.shape(), expected.shape()) << name;
  double scale = 1e-4;
  for (std::int64_t i = 0; i < expected.element_count(); ++i)
    scale = std::max(scale, std::abs(expected.at(i)));
  for (std::int64_t i = 0; i < actual.element_count(); ++i)
    ASSERT_NEAR(actual.at(i), expected.at(i), tolerance * scale) << name << " at " << i;
}

}  // namespace superstep::test
