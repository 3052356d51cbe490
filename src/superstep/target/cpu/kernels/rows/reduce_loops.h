// The loops of reductions. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/rows/reduce.h"

namespace superstep::kernels {

// One outer index: `reduced` rows of `inner` elements, `stride` apart, into `inner` results.
struct ReduceRun {
  const void* x;
  std::int64_t reduced, stride, inner;
  float* y;
};

struct ReduceLoops {
  void (*columns)(const ReduceRun& run);  // inner contiguous
  void (*row)(const ReduceRun& run);      // inner = 1, reduced contiguous
};

// For the instruction set in force; type f32 or bf16. A mean is a sum here.
ReduceLoops reduce_loops(Reduction reduction, ElementType type);

// a (reduction) b, of one element.
float combine(Reduction reduction, float a, float b);

}  // namespace superstep::kernels
