// Where i8 weights and their sums lie in packed memory. Internal to the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"

namespace superstep::kernels {

struct ByteWeights {
  std::int64_t groups = 1, taps = 1, in = 1, out = 1;  // channels of a group; `in` a multiple of 4

  // Bytes from the start to the sums, [groups][taps][out] of i32.
  std::size_t sums_offset() const;
  std::int64_t quad_index(std::int64_t group, std::int64_t tap, std::int64_t channel,
                          std::int64_t result) const;
};

ByteWeights byte_weights(const IntegerConvolution& convolution);

}  // namespace superstep::kernels
