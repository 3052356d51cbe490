// The loops of pooling by windows that slide: over long runs of f32. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// All of them go from the first element to the last, so that `to` may be `a` where `b` lies behind it.
struct SlidingLoops {
  void (*widen)(const void* from, std::int64_t n, float* to);
  // The larger of two, the first of equal ones; NaN where one is NaN.
  void (*larger)(const float* a, const float* b, std::int64_t n, float* to);
  void (*sum)(const float* a, const float* b, std::int64_t n, float* to);
  void (*store_larger)(const float* a, const float* b, std::int64_t n, void* to);
  void (*store_average)(const float* sums, const float* counts, float rows, std::int64_t n, void* to);
};

// For the instruction set in force; `from` and `to` are f32 or bf16.
SlidingLoops sliding_loops(ElementType from, ElementType to);

}  // namespace superstep::kernels
