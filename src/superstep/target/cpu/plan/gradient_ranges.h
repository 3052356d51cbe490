// Which parts of the accumulator a run exchanges with its neighbours, and when each is complete.
#pragma once

#include <cstddef>
#include <vector>

#include "superstep/target/cpu/plan/plan.h"

namespace superstep::target::cpu {

struct GradientRange {
  ValueRange values;          // of the accumulator
  std::size_t last_step = 0;  // of the body: the last that writes there
};

// What the body writes of the accumulator, in the order in which it is completed: neighbours joined up to
// `wanted` values, longer stretches divided into such pieces (of whole cache lines). Slots that only the
// update writes are left out.
std::vector<GradientRange> gradient_ranges(const Plan& plan, std::size_t wanted);

// The same in the order of memory, neighbours joined.
std::vector<ByteRange> summed_ranges(const Plan& plan);

}  // namespace superstep::target::cpu
