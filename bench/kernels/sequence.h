// A sequence of prepared kernels over named tensors, as a compiled plan would run it, timed kernel by kernel
// and as a whole.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::bench {

class Sequence {
 public:
  // Memory of `elements` values of 4 bytes, filled with small random numbers; the same name is the same
  // tensor.
  void* tensor(const std::string& name, std::int64_t elements);

  // Throws Error when the kernel was refused. `phase` groups rows of the table ("forward", "backward");
  // `times` counts in sums only: how many layers of this shape the model has.
  const kernels::Kernel& add(const std::string& phase, const std::string& name, kernels::Prepared kernel,
                             std::vector<void*> inputs, std::vector<void*> outputs, int times = 1);

  void run() const;

  struct Timing {
    std::string phase, name, kernel;
    double flops, bytes, seconds;
    int times;
  };
  std::vector<Timing> time_each() const;
  std::size_t tensor_bytes() const { return tensor_bytes_; }

 private:
  struct Step {
    std::string phase, name;
    kernels::KernelPointer kernel;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    int times;
  };
  static void run_step(const Step& step, void* scratch) {
    step.kernel->run({step.inputs, step.outputs, scratch});
  }

  struct Free {
    void operator()(void* p) const;
  };
  using Memory = std::unique_ptr<void, Free>;
  static Memory allocate(std::size_t bytes);

  std::map<std::string, Memory> tensors_;
  std::vector<Step> steps_;
  Memory scratch_;
  std::size_t scratch_bytes_ = 0, tensor_bytes_ = 0;
};

// Prints the table: kernel, time a sample, GFLOP/s, share of the peak; sums by phase; and the floor.
// `in_sequence`: also time all kernels one behind the other.
void print_table(const Sequence& sequence, std::int64_t samples, double peak, bool in_sequence = true);

}  // namespace superstep::bench
