#include "superstep/base/system/instruction_set.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/built_kernels.h"
#include "superstep/base/system/matrix_registers.h"

namespace superstep {

bool converts_bf16 = false;

namespace {

#if defined(__x86_64__)
constexpr const char* narrowest_name = "scalar";

// AVX2 and AVX-512 as Highway means them (hwy/ops/set_macros-inl.h).
bool processor_has_beyond_scalar(InstructionSet set) {
  switch (set) {
    case InstructionSet::scalar: break;
    case InstructionSet::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
             __builtin_cpu_supports("f16c");
    case InstructionSet::avx512:
      return processor_has_beyond_scalar(InstructionSet::avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    case InstructionSet::avx512_bf16:
      return processor_has_beyond_scalar(InstructionSet::avx512) && __builtin_cpu_supports("avx512bf16");
    case InstructionSet::amx:
      return processor_has_beyond_scalar(InstructionSet::avx512_bf16) && has_matrix_registers();
  }
  return false;
}

std::int64_t vector_targets(InstructionSet set) {
  const std::int64_t up_to =
      (set >= InstructionSet::avx2 ? HWY_AVX2 : 0) | (set >= InstructionSet::avx512 ? HWY_AVX3 : 0);
  return up_to & HWY_TARGETS;
}

// Whether kernels were compiled for it (SUPERSTEP_KERNELS): their files are for the same sets as this one.
bool is_built_beyond_scalar(InstructionSet set) {
  return (HWY_TARGETS & (set >= InstructionSet::avx512 ? HWY_AVX3 : HWY_AVX2)) != 0;
}
#else
constexpr const char* narrowest_name = "neon";
bool processor_has_beyond_scalar(InstructionSet /*set*/) { return false; }
bool is_built_beyond_scalar(InstructionSet /*set*/) { return false; }
std::int64_t vector_targets(InstructionSet /*set*/) { return 0; }
#endif

constexpr InstructionSet all_sets[] = {InstructionSet::scalar, InstructionSet::avx2, InstructionSet::avx512,
                                       InstructionSet::avx512_bf16, InstructionSet::amx};

bool processor_has(InstructionSet set) {
  return set == InstructionSet::scalar || processor_has_beyond_scalar(set);
}

bool is_built(InstructionSet set) { return set == InstructionSet::scalar || is_built_beyond_scalar(set); }

// Of all sets those for which this is so.
std::vector<InstructionSet> sets_that(bool (*holds)(InstructionSet)) {
  std::vector<InstructionSet> sets;
  for (InstructionSet set : all_sets)
    if (holds(set)) sets.push_back(set);
  return sets;
}

std::vector<InstructionSet> find_available() {
  return sets_that([](InstructionSet set) { return processor_has(set) && is_built(set); });
}

// What Highway may choose from: the set and everything narrower.
std::int64_t highway_targets(InstructionSet set) { return HWY_STATIC_TARGET | vector_targets(set); }

InstructionSet apply(InstructionSet set) {
  converts_bf16 = set >= InstructionSet::avx512_bf16;
  hwy::GetChosenTarget().Update(highway_targets(set));
  return set;
}

void require(InstructionSet set) {
  if (!processor_has(set))
    throw Error(ErrorCode::unsupported, std::string("this processor has no ") + name_of(set), {},
                std::string("the widest it has is ") + name_of(available_instruction_sets().back()));
  if (!is_built(set))
    throw Error(ErrorCode::unsupported,
                std::string("this program was built without kernels for ") + name_of(set), {},
                "build it with -DSUPERSTEP_KERNELS=all to have every one");
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

std::optional<InstructionSet> widest_given_away(std::span<const InstructionSet> processor,
                                                std::span<const InstructionSet> built) {
  const InstructionSet widest = processor.back();
  return std::ranges::find(built, widest) == built.end() ? std::optional(widest) : std::nullopt;
}

std::optional<InstructionSet> widest_given_away() {
  return widest_given_away(sets_that(processor_has), sets_that(is_built));
}

InstructionSet instruction_set() { return current(); }

void set_instruction_set(InstructionSet set) {
  require(set);
  current() = apply(set);
}

bool has_byte_dot_products() {
#if defined(__x86_64__)
  return instruction_set() >= InstructionSet::avx512 && __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

}  // namespace superstep

// What Highway's headers ask its library for: for which instruction sets loops may be chosen, and which are.
//
// The library itself is not linked. It holds what Highway's own benchmarks need besides, and measures its
// clock whenever a program that is linked to it starts: milliseconds that no command has a use for.
namespace hwy {

std::int64_t SupportedTargets() { return superstep::highway_targets(superstep::instruction_set()); }

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
