// What the tests of operators share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/op/core/gradient_check.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {

// A function as a graph, ready to run. Floating inputs are inputs of the graph, others constants, so that
// they may be shapes and axes.
struct Built {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};
Built build(const Function& function, const std::vector<Tensor>& inputs);

std::vector<Tensor> results(const Function& function, const std::vector<Tensor>& inputs);
Tensor result(const Function& function, const std::vector<Tensor>& inputs);
std::vector<double> values(const Tensor& tensor);

// Relative to max(1, |expected|); NaN and infinities must be themselves.
void expect_values(const Tensor& tensor, const std::vector<double>& expected, double tolerance = 1e-14);
void expect_equal(const Tensor& a, const Tensor& b, double tolerance = 1e-13);

// Building or running the function must be refused with a message that holds `text`.
void expect_refusal(const Function& function, const std::vector<Tensor>& inputs, const std::string& text);

}  // namespace superstep::op::test
