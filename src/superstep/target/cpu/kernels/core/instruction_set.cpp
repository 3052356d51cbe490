#include "superstep/target/cpu/kernels/core/instruction_set.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/matrix_registers.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"

namespace superstep::kernels {

bool converts_bf16 = false;

namespace {

#if defined(__x86_64__)
constexpr const char* narrowest_name = "scalar";

bool processor_has_beyond_scalar(InstructionSet set) {
  switch (set) {
    case InstructionSet::scalar: break;
    case InstructionSet::avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case InstructionSet::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512cd");
    case InstructionSet::avx512_bf16:
      return processor_has_beyond_scalar(InstructionSet::avx512) && __builtin_cpu_supports("avx512bf16");
    case InstructionSet::amx:
      return processor_has_beyond_scalar(InstructionSet::avx512_bf16) && has_matrix_registers();
  }
  return false;
}

std::int64_t vector_targets(InstructionSet set) {
  return (set >= InstructionSet::avx2 ? HWY_AVX2 : 0) | (set >= InstructionSet::avx512 ? HWY_AVX3 : 0);
}
#else
constexpr const char* narrowest_name = "neon";
bool processor_has_beyond_scalar(InstructionSet /*set*/) { return false; }
std::int64_t vector_targets(InstructionSet /*set*/) { return 0; }
#endif

constexpr InstructionSet all_sets[] = {InstructionSet::scalar, InstructionSet::avx2, InstructionSet::avx512,
                                       InstructionSet::avx512_bf16, InstructionSet::amx};

bool processor_has(InstructionSet set) {
  return set == InstructionSet::scalar || processor_has_beyond_scalar(set);
}

std::vector<InstructionSet> find_available() {
  std::vector<InstructionSet> sets;
  for (InstructionSet set : all_sets)
    if (processor_has(set)) sets.push_back(set);
  return sets;
}

// What Highway may choose from: the set and everything narrower.
std::int64_t highway_targets(InstructionSet set) { return HWY_STATIC_TARGET | vector_targets(set); }

InstructionSet apply(InstructionSet set) {
  converts_bf16 = set >= InstructionSet::avx512_bf16;
  hwy::SetSupportedTargetsForTest(highway_targets(set));
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return set;
}

void require(InstructionSet set) {
  if (!processor_has(set))
    throw Error(ErrorCode::unsupported, std::string("this processor has no ") + name_of(set), {},
                std::string("the widest it has is ") + name_of(available_instruction_sets().back()));
}

// The widest, or what the environment asks for: what a narrower processor would do can be seen and timed on
// any.
InstructionSet first_set() {
  const char* const asked = std::getenv("SUPERSTEP_ISA");
  if (asked == nullptr || *asked == '\0') return available_instruction_sets().back();
  const std::optional<InstructionSet> set = instruction_set_from_name(asked);
  if (!set)
    throw Error(ErrorCode::invalid_argument, std::string("there is no instruction set ") + printable(asked),
                "SUPERSTEP_ISA",
                std::string("there are ") + narrowest_name + ", avx2, avx512, avx512_bf16 and amx");
  require(*set);
  return *set;
}

InstructionSet& current() {
  static InstructionSet set = apply(first_set());
  return set;
}

}  // namespace

const char* name_of(InstructionSet set) {
  static constexpr const char* names[] = {narrowest_name, "avx2", "avx512", "avx512_bf16", "amx"};
  return names[static_cast<int>(set)];
}

std::optional<InstructionSet> instruction_set_from_name(std::string_view name) {
  for (InstructionSet set : all_sets)
    if (name == name_of(set)) return set;
  return std::nullopt;
}

std::span<const InstructionSet> available_instruction_sets() {
  static const std::vector<InstructionSet> sets = find_available();
  return sets;
}

InstructionSet instruction_set() { return current(); }

void set_instruction_set(InstructionSet set) {
  require(set);
  current() = apply(set);
}

ElementType multiplied_as(ElementType operands) {
  const bool widened = operands == ElementType::bf16 && !multiplies_pairs_fast();
  return widened ? ElementType::f32 : operands;
}

}  // namespace superstep::kernels
