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

ElementType multiplied_as(ElementType operands) {
  const bool widened = operands == ElementType::bf16 && !multiplies_pairs_fast();
  return widened ? ElementType::f32 : operands;
}

}  // namespace superstep::kernels
