// Element-wise groups as vector programs and as epilogues of products.
#pragma once

#include <expected>
#include <optional>
#include <vector>

#include "superstep/target/cpu/kernels/core/epilogue.h"
#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// One pass over memory that computes the group's root from the values it reads from outside.
Lowered lower_elementwise_group(Lowering& lowering, const FusionGroup& group);

// The group as a program that stores nothing yet, over the dimensions of its root in the order given.
struct GroupProgram {
  kernels::VectorProgram program;
  kernels::VectorProgram::Value root;
  std::vector<kernels::VectorProgram::Value> read;  // of `also`
  std::vector<DraftOperand> inputs;                 // in slot order
  std::string ops, name;
};
// `also`: values that broadcast to the root's shape and that the program reads beside the group's.
std::expected<GroupProgram, Refusal> program_of_group(Lowering& lowering, const FusionGroup& group,
                                                      std::vector<int> order,
                                                      const std::vector<ValueId>& also = {});

// The group as steps applied to the product's result, with the tensors they read, in slot order.
struct EpilogueMatch {
  kernels::Epilogue epilogue;
  std::vector<ValueId> operands;
};
// `channel_axis` is the dimension along which a bias runs.
std::expected<EpilogueMatch, Refusal> match_epilogue(const Lowering& lowering, const FusionGroup& group,
                                                     ValueId product, int channel_axis);

}  // namespace superstep::target::cpu
