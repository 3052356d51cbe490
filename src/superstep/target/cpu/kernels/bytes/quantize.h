// f32 to bytes, where no product's kernel does it on the way.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// y = round(x / scale) + zero_point in u8, limited to 0..255, halves to even; x / scale is x times the
// inverse, as fused kernels take it. `rows` of `elements` that lie one after another; between rows of x and y
// there may be gaps. Slots: inputs x (f32); outputs y.
struct Quantize {
  std::int64_t elements = 1;
  std::int64_t rows = 1;
  std::int64_t x_stride = 0, y_stride = 0;  // between rows, in elements; of several rows
  float scale = 1;
  std::int32_t zero_point = 0;
};

Prepared prepare(const Quantize& quantize);

}  // namespace superstep::kernels
