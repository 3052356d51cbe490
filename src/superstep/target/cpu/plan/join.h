// Steps at which micro-batches that run in step wait for each other: what each gives, and what all get.
#pragma once

#include <span>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::target::cpu {

class Join : public kernels::Kernel {
 public:
  using Kernel::Kernel;
  // The arguments of every micro-batch, in order. Called once, when all have come here.
  virtual void join(std::span<const kernels::Arguments> parts) const = 0;
};

// Every micro-batch gets the mean of x over all of them, and over other runs where there are any (RunInfo).
// Slots: x, the run's RunInfo; y. `count` f32 values.
kernels::KernelPointer prepare_mean_of_parts(std::size_t count);

}  // namespace superstep::target::cpu
