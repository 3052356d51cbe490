#include "superstep/target/cpu/kernels/core/pair_rate.h"

#include "superstep/base/system/pair_rate.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"

namespace superstep::kernels {

bool multiplies_pairs_fast() {
  const InstructionSet set = instruction_set();
  if (set < InstructionSet::avx512_bf16) return false;
  if (const PairRate assumed = assumed_pair_rate.load(std::memory_order_relaxed);
      assumed != PairRate::measured)
    return assumed == PairRate::fast;
  return set >= InstructionSet::amx || pair_products_are_fast();
}

}  // namespace superstep::kernels
