// The instruction set in force, by the names that kernels use, and what it means for products.
#pragma once

#include "superstep/base/element_type.h"
#include "superstep/base/system/instruction_set.h"

namespace superstep::kernels {

using superstep::available_instruction_sets;
using superstep::converts_bf16;
using superstep::instruction_set;
using superstep::instruction_set_from_name;
using superstep::InstructionSet;
using superstep::name_of;
using superstep::set_instruction_set;

// What operands are multiplied as under the set in force: bf16 as itself where dot products of its pairs are
// fast (pair_rate.h), else as f32.
ElementType multiplied_as(ElementType operands);

}  // namespace superstep::kernels
