// A training step of a model of the zoo on two targets.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/target/zoo_models.h"

namespace superstep::test {

inline double largest(const Tensor& tensor) {
  double value = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) value = std::max(value, std::abs(tensor.at(i)));
  return value;
}

inline double worst_difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) worst = std::max(worst, std::abs(a.at(i) - b.at(i)));
  return worst;
}

inline std::vector<Tensor> outputs_for(const target::Executable& executable) {
  std::vector<Tensor> outputs;
  for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  return outputs;
}

// Every parameter after one step, each against the largest change of its own; and a step that is wrong by a
// hundredth of it must be seen. Both begin with the states of the first.
inline void expect_steps_alike(target::Executable& tried, target::Executable& reference, const Model& model,
                               const std::vector<Tensor>& inputs) {
  auto actual = outputs_for(tried), expected = outputs_for(reference);
  const auto names = tried.state_names();
  std::vector<Tensor> before;
  for (const std::string& name : names) {
    reference.set_state(name, tried.state(name));
    before.push_back(tried.state(name));
  }
  // Masks of dropout are a function of the counter and the samples: the same in both.
  tried.run(inputs, actual);
  reference.run(inputs, expected);
  EXPECT_NEAR(actual[0].at(0), expected[0].at(0), 1e-4 * std::abs(expected[0].at(0)));
  std::int64_t changed = 0;
  double loudest = 0;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != "step")  // whose change of one would drown what is learnt
      loudest = std::max(loudest, worst_difference(reference.state(names[i]), before[i]));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Tensor after = reference.state(names[i]);
    const double change = worst_difference(after, before[i]),
                 error = worst_difference(tried.state(names[i]), after);
    const double rounding = 2e-7 * largest(after) + 5e-7 * loudest;
    EXPECT_LE(error, model.tolerance * change + rounding) << names[i] << ", change " << change;
    changed += change > 100 * rounding;
  }
  EXPECT_GT(changed, static_cast<std::int64_t>(names.size()) / 4);
}

}  // namespace superstep::test
