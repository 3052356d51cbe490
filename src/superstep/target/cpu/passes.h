// What this target makes of a graph before it plans it: its table of passes.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/target/cpu/plan/memory_limit.h"
#include "superstep/transform/pass.h"

namespace superstep::target::cpu {

// Of a model, before precision and derivatives: Target::suited.
std::vector<transform::Pass> model_passes();

struct PassUse {
  std::int64_t parts_in_step = 1;    // micro-batches that take statistics together; 1: this one is alone
  Recomputation recomputation = {};  // share 0: none
  // Of the plan that is to be made (lowering.h); no entry: every output has a row a sample.
  std::vector<bool> batched_output = {};
  bool whole_batch = true;
};

// Of the graph that is compiled. The first of them, decomposition_passes(), do not depend on how many parts
// run in step, and show whether they can.
std::vector<transform::Pass> decomposition_passes();
std::vector<transform::Pass> graph_passes(const PassUse& use = {});

}  // namespace superstep::target::cpu
