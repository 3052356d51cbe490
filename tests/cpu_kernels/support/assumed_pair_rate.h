// Kernels prepared as if products of bf16 pairs were fast, or slow, on this processor.
#pragma once

#include "superstep/target/cpu/kernels/core/pair_rate.h"

namespace superstep::kernels {

class AssumedPairRate {
 public:
  explicit AssumedPairRate(PairRate rate) { assumed_pair_rate = rate; }
  ~AssumedPairRate() { assumed_pair_rate = PairRate::measured; }
  AssumedPairRate(const AssumedPairRate&) = delete;
  AssumedPairRate& operator=(const AssumedPairRate&) = delete;
};

}  // namespace superstep::kernels
