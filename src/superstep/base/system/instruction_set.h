// The instruction set that loops are chosen for: one for the whole process.
//
// Loops that matter exist in several vector widths; the widest the processor has is taken unless the
// environment variable SUPERSTEP_ISA or set_instruction_set() asks for a narrower one. What was prepared
// before keeps what it was prepared for.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace superstep {

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

// Not thread-safe: call before loops are prepared. Throws Error (unsupported) when the processor lacks it.
void set_instruction_set(InstructionSet set);

// Whether the set in force holds dot products of four bytes in vectors of 16 sums (AVX-512 VNNI), which
// processors with AVX-512 have or have not.
bool has_byte_dot_products();

// Whether the set in force converts f32 to bf16 in one instruction: asked inside loops, hence a variable.
// Only set_instruction_set() changes it.
extern bool converts_bf16;

}  // namespace superstep
