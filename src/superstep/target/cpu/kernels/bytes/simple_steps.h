// Epilogues that products of bytes apply while their sums are in registers: a factor a channel, a bias, a
// tensor added and a rectifier at most, in this order. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/core/epilogue.h"

namespace superstep::kernels {

struct SimpleSteps {
  bool simple = true, factor = false, bias = false, added = false;
  float slope = 1;
  std::int64_t added_column = 0, added_row = 0;  // strides of the tensor; 0: the result's own
};

SimpleSteps simple_steps(const Epilogue& epilogue);

}  // namespace superstep::kernels
