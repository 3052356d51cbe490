// Which stream of random words a loop reads. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

// That of RandomStream(seed, sample, purpose).
struct WordAddress {
  std::uint64_t seed = 0, sample = 0;
  std::uint32_t purpose = 0;
};

}  // namespace superstep::kernels
