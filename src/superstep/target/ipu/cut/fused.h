// Element-wise operators in a row as one: what lies between them stays in a worker's registers.
#pragma once

#include <vector>

#include "superstep/op/core/definition.h"

namespace superstep::target::ipu {

// One of them. Values are numbered: operands of the whole first, then what each step makes.
struct FusedStep {
  const op::Definition* definition = nullptr;
  graph::Attributes attributes;
  ElementType element = ElementType::f32;  // of what it makes
  std::vector<int> inputs;                 // values; -1: left out
};

// Every step makes one value of the shape of the results.
struct Fused {
  std::vector<FusedStep> steps;
  std::vector<int> results;  // the steps whose values are outputs, in their order
  op::Cost cost;             // of all steps, without the bytes of what stays inside
};

// Step by step: the same bits as the operators one by one.
void evaluate(const Fused& fused, const op::EvaluateContext& context);

}  // namespace superstep::target::ipu
