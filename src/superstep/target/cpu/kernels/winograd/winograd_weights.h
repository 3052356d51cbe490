// Weights of Winograd convolutions. Internal to the kernels: weights.h is the way to them.
#pragma once

#include "superstep/target/cpu/kernels/product/weights.h"

namespace superstep::kernels {

// The tile that a layout belongs to; 0 for those that are not of Winograd's.
std::int64_t winograd_tile_of(WeightLayout layout);

std::size_t winograd_packed_elements(const WeightTransfer& transfer);
Prepared prepare_winograd_pack(const WeightTransfer& transfer);

}  // namespace superstep::kernels
