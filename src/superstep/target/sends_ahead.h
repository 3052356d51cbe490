// Executables with memory of their own, which begin to copy the inputs of the next run while one goes on.
#pragma once

#include <span>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/base/tensor.h"
#include "superstep/target/target.h"

namespace superstep::target {

// The first inputs of the next run, in the order of the ports, or none where they are not there yet. They
// must stay as they are until that run, which knows them by their memory.
using NextInputs = FunctionRef<std::vector<Tensor>()>;

class SendsAhead {
 public:
  virtual ~SendsAhead() = default;
  // As Executable::run; asks for `next` once, when the run is under way. What that throws comes after the
  // run.
  virtual void run(std::span<const Tensor> inputs, std::span<Tensor> outputs, NextInputs next) = 0;
};

// Runs, and lets the executable have the next inputs where it can use them.
inline void run_sending_ahead(Executable& executable, std::span<const Tensor> inputs,
                              std::span<Tensor> outputs, NextInputs next) {
  if (auto* const sends = dynamic_cast<SendsAhead*>(&executable)) return sends->run(inputs, outputs, next);
  executable.run(inputs, outputs);
}

}  // namespace superstep::target
