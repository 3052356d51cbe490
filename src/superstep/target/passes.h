// The tables of passes: whatever a graph goes through between who described it and the plan.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "superstep/transform/pass.h"

namespace superstep::target {

// What a graph is compiled for, as far as passes depend on it.
struct PassUse {
  std::int64_t parts_in_step = 1;  // parts of a batch that take their statistics together
  double recompute_share = 0;      // operations that may be done again in the backward pass, to keep less
};

std::vector<transform::Pass> standard_passes(const PassUse& use);  // those that every target runs

struct PassTable {
  // Before precision and derivatives: Target::suited. May be null.
  std::vector<transform::Pass> (*of_models)() = nullptr;
  // Before the plan: Target::compile.
  std::vector<transform::Pass> (*of_graphs)(const PassUse& use) = standard_passes;
};

// By the name of a target, or "onnx": what an exported graph goes through. Throws Error (invalid_argument)
// on another name, with the nearest.
PassTable pass_table(std::string_view target);

}  // namespace superstep::target
