// f32 to bytes, where no product's kernel does it on the way.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/kernel.h"

namespace superstep::kernels {

// y = round(x / scale) + zero_point in u8, limited to 0..255, halves to even; x / scale is x times the
// inverse, as fused kernels take it. Elements are dense. Slots: inputs x (f32); outputs y.
struct Quantize {
  std::int64_t elements = 1;
  float scale = 1;
  std::int32_t zero_point = 0;
};

Prepared prepare(const Quantize& quantize);

}  // namespace superstep::kernels
