// The loops of pooling over one run of contiguous elements. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

inline constexpr std::int64_t max_pool_taps = 256;

// `n` results from `taps` operands: those of one window (forward) or those whose windows hold one input
// (gradient).
struct PoolRun {
  std::int64_t n, taps;
  const void* const* operands;        // x, or dy
  const std::uint8_t* const* argmax;  // gradient of max: beside each dy
  const std::uint8_t* numbers;        // of the taps; gradient of max: the number that must have won
  const float* factors;               // gradient of averages: one an operand; forward: factors[0] on the sum
  void* result;                       // y, or dx
  std::uint8_t* winners;              // forward max: the argmax to write, or null
  bool accumulate;                    // gradient: add to the result
  // Forward: so many windows one after another, whose operands, results and winners lie so many elements
  // further each time.
  std::int64_t positions = 1, operand_step = 0, result_step = 0, winner_step = 0;
};

using PoolLoop = void(const PoolRun& run);

struct PoolLoops {
  PoolLoop *max, *average, *max_gradient, *average_gradient;
};

// For the instruction set in force; `from` and `to` are f32 or bf16, or both u8: then there is `max` alone,
// which writes no winners.
PoolLoops pool_loops(ElementType from, ElementType to);

}  // namespace superstep::kernels
