// A case of tests/op/cases as a graph in an element type, ready for any target.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/graph/graph.h"
#include "superstep/target/target.h"
#include "tests/op/cases/case.h"

namespace superstep::matrix {

using op::test::Case;

// Its data inputs are graph inputs in `element`: the floating ones; where a case has none, its integers.
// Integer inputs that a shape rule must know are constants.
struct Built {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};

// The reason when the operator does not take the type.
std::expected<Built, std::string> build(const Case& item, ElementType element);

// The reverse-mode derivative of all floating outputs by all floating inputs, with fixed random cotangents.
std::expected<Built, std::string> build_gradient(const Case& item, ElementType element);

// The forward-mode derivative of all floating outputs along fixed random tangents of all floating inputs.
std::expected<Built, std::string> build_tangent(const Case& item, ElementType element);

struct TargetRun {
  std::vector<Tensor> outputs;
  std::vector<target::PlanStep> steps;
};
TargetRun run(const std::string& target_name, const Built& built, int threads = 1);

// Errors relative to the largest element, as the matrix allows them when two targets are compared. Targets
// sum in f32 or wider and round at other places than the reference does: a few roundings to the type.
double tolerance(ElementType element);
// Of an operator with inputs of this type: numbers drawn by a counter, an integer, are functions in f32.
double tolerance(const std::string& op, ElementType element);

}  // namespace superstep::matrix
