// Whether products of bf16 pairs are worth their instruction on this processor.
#pragma once

#include <atomic>
#include <cstdint>

namespace superstep::kernels {

enum class PairRate : std::uint8_t { measured, fast, slow };

// What is taken in place of this processor's rate, where it is not `measured`. For tests and trials, which
// try both whatever the processor is.
inline std::atomic<PairRate> assumed_pair_rate{PairRate::measured};

// Does the set in force multiply pairs of bf16 faster than the same numbers in f32? Without an instruction
// for pairs never, with matrix registers always; between them what is measured (base/system/pair_rate.h).
bool multiplies_pairs_fast();

}  // namespace superstep::kernels
