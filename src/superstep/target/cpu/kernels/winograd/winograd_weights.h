// Weights of Winograd convolutions, transformed for tiles of 2, 3 or 4 positions a side (winograd.h): in f32,
// or in bf16 in pairs of the sum's channels. Internal to the kernels: weights.h is the way to them.
#pragma once

#include "superstep/target/cpu/kernels/product/weights.h"

namespace superstep::kernels {

// [panel][point][in][out of the panel], for the forward pass; or turned round, [panel][point][out][in of the
// panel], for the gradient by the input.
const OwnWeights& winograd_weights(std::int64_t tile, bool turned);

}  // namespace superstep::kernels
