// How many threads a step is divided over, by what it computes and moves and by what it costs to call them.
#pragma once

#include <cstddef>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::target::cpu {

// Threads that a step of one micro-batch goes to, of so many that wait for it; 1 where it takes less time
// than calling a second one pays for.
int threads_that_pay(const kernels::KernelInfo& step, int threads);

// Micro-batches that take a step at the same time: all of them, of which a group has so many, one after the
// other.
struct Together {
  std::size_t micro_batches = 1, a_group = 1;
};
// The threads that a step of all of them is divided over; 1 where each group had better run its own alone, on
// a thread of its own.
int threads_that_pay_together(const kernels::KernelInfo& step, const Together& together, int threads);

}  // namespace superstep::target::cpu
