// What the parts of a run (executable*.cpp) hand each other.
#pragma once

#include <span>
#include <vector>

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

}  // namespace superstep::target::cpu
