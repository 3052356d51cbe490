// Epilogues that products of bytes apply while their sums are in registers: a factor a channel, a bias, a
// tensor added and a rectifier, or a hard swish where nothing is added, at most, in this order; the tensor
// may come before the bias, which is a rounding's difference. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/bytes/integer_finish.h"
#include "superstep/target/cpu/kernels/core/epilogue.h"

namespace superstep::kernels {

struct SimpleSteps {
  bool simple = true, factor = false, bias = false, added = false;
  bool hard_swish = false;
  float slope = 1;
  std::int64_t added_column = 0, added_row = 0;  // strides of the tensor; 0: the result's own
  bool added_first = false;                      // its operand comes before the bias's
  bool added_bytes = false;                      // the tensor is u8: (byte - added_zero) * added_scale
  float added_scale = 0, added_zero = 0;
};

SimpleSteps simple_steps(const Epilogue& epilogue);

// Gives the block its factors and its bias out of the kernel's epilogue operands, `scale` being room for the
// block's scales. Returns the first element of the tensor that is added; null: none is.
const void* take_operands(const SimpleSteps& steps, const void* const* operands, std::int64_t first_channel,
                          float* scale, IntegerBlock& block);

// Has the block add that tensor from element `at` on, columns `stride` apart.
void set_added(const SimpleSteps& steps, const void* tensor, std::int64_t at, std::int64_t stride,
               IntegerBlock& block);

}  // namespace superstep::kernels
