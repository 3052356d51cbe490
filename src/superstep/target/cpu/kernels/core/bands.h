// Kernels that follow each other, run band by band: what one makes of a band is read by the next while it is
// in the second-level cache.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "superstep/target/cpu/kernels/core/range_kernel.h"

namespace superstep::kernels {

// In their order; the units of each are a multiple of those of the first. What a member reads of an earlier
// one, both do by units.
// Slots: those of all members, one member behind the other.
struct Bands {
  std::vector<std::shared_ptr<const RangeKernel>> members;
};

Prepared prepare(const Bands& bands);

// The members of such a kernel, or the kernel itself where it is one that could be; else none.
std::vector<std::shared_ptr<const RangeKernel>> members_of(const std::shared_ptr<const Kernel>& kernel);

}  // namespace superstep::kernels
