// The instruction set that kernels prepared from now on are made for.
//
// Every kernel exists in several vector widths; the widest the processor has is taken unless a narrower one
// is asked for (tests force each in turn). Kernels already prepared keep
// what they were prepared for.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

enum class InstructionSet {
  scalar,       // what every processor has: x86, one lane without fused multiply-add; ARM, NEON, by that name
  avx2,         // AVX2 with FMA: 8 lanes
  avx512,       // AVX-512 F, CD, BW, DQ, VL: 16 lanes
  avx512_bf16,  // the same with dot products of bf16 pairs
  amx,          // the same with matrix registers, for products of bf16 and of bytes
};

const char* name_of(InstructionSet set);
std::optional<InstructionSet> instruction_set_from_name(std::string_view name);

// Those this processor has, narrowest first; never empty.
std::span<const InstructionSet> available_instruction_sets();

// The one in force; the widest available, or what the environment variable SUPERSTEP_ISA names, until
// set_instruction_set() is called. Throws Error where SUPERSTEP_ISA names none, or one the processor lacks.
InstructionSet instruction_set();

// Not thread-safe: call before kernels are prepared. Throws Error (unsupported) when the processor lacks it.
void set_instruction_set(InstructionSet set);

// Whether the set in force converts f32 to bf16 in one instruction: asked inside loops, hence a variable.
// Only set_instruction_set() changes it.
extern bool converts_bf16;

// What operands are multiplied as under the set in force: bf16 as itself where dot products of its pairs are
// fast (pair_rate.h), else as f32.
ElementType multiplied_as(ElementType operands);

}  // namespace superstep::kernels
