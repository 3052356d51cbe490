// What the softmax loops of each instruction set are given. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/rows/softmax.h"

namespace superstep::kernels {

using SoftmaxFunction = void(const Softmax& s, const void* x, const void* dy, void* y);

struct SoftmaxChoice {
  bool gradient, logarithm;
  ElementType x_type, y_type, dy_type;
};

}  // namespace superstep::kernels
