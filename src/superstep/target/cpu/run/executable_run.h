// What the parts of a run (executable*.cpp) hand each other.
#pragma once

#include <fmt/format.h>

#include <span>
#include <tuple>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/target/cpu/run/executable.h"

namespace superstep::target::cpu {

struct CpuExecutable::Worker {
  Memory scratch;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  StepRecorder recorder;
};

struct CpuExecutable::Run {
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
};

struct CpuExecutable::Section {
  std::span<const Step> steps;
  std::size_t first_step;  // its number among the steps of all parts
  bool in_micro_batch;
};

// What a kernel refuses (an index that lies outside) says at which node.
template <class Work>
auto at_node(const Step& step, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    const auto& [node, op] = std::tie(step.info.node, step.info.op);
    throw error.in(node.empty() ? op : fmt::format("{} '{}'", op, node));
  }
}

}  // namespace superstep::target::cpu
