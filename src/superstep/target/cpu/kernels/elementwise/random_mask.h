// Masks of dropout, made from the numbers of base/random.h.
//
// Whether an element is kept depends on (seed, sample, purpose, number of the element within its sample)
// alone, so that the same mask comes out whatever the micro-batch, the layout and the number of threads:
// element e of sample s is kept when the e-th next_u32() (from 0) of RandomStream(seed, s, purpose) is below
// floor(keep * 2^32). In other words word e mod 4 of
//   philox({e / 4, purpose, s mod 2^32, s / 2^32}, {seed mod 2^32, seed / 2^32}).
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// Read from memory at each run.
struct RandomAddress {
  std::uint64_t seed = 0;
  std::uint64_t first_sample = 0;  // the sample number of n = 0; those after it follow
  std::uint32_t purpose = 0;       // separates the layers of a model
};

// mask (h, w, n, c), of the image's strides: u8: 1 kept, 0 dropped; f32 or bf16: 1 / keep or 0.
// Element number e = h * number_h + w * number_w + c * number_c; all zero stands for the order [c][h][w] of
// a dense NCHW sample. Numbers in the order [h][w][c] (number_c = 1) are made four times as fast.
// Slots: inputs RandomAddress*; outputs mask.
struct RandomMask {
  Image image;  // image.type: u8, f32 or bf16
  float keep = 0.5f;
  std::int64_t number_h = 0, number_w = 0, number_c = 0;
};

Prepared prepare(const RandomMask& mask);

}  // namespace superstep::kernels
