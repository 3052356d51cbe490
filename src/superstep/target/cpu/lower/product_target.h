// What the ways to lower a product share: where its result goes, and the operands around it.
#pragma once

#include <string>
#include <vector>

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "superstep/target/cpu/lower/image_operands.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// A product being lowered: where its result goes, and what is done to it on the way.
struct ProductTarget {
  NodeId product;
  ValueId result;                 // what is written: the product's output, or the group's root
  kernels::Epilogue epilogue;     // after the kernel's own bias
  std::vector<ValueId> operands;  // that the epilogue reads
  std::string name, op;
};

// `group` may be null: the product alone.
std::expected<ProductTarget, Refusal> target_of(const Lowering& lowering, NodeId product,
                                                const FusionGroup* group, int channel_axis);

using ImageOf = std::expected<kernels::Image, Refusal>(const Lowering& lowering, ValueId id);

// Puts the strides of the tensors that the epilogue reads into its steps.
Lowered set_operand_strides(const Lowering& lowering, ProductTarget& target, ImageOf* image_of = as_image);

// Bias as the first step of the epilogue. ONNX's bias has a value a channel; epilogues read f32.
Lowered prepend_bias(const Lowering& lowering, ValueId bias, ProductTarget& target);

// Packing reads f32: the parameters themselves, behind the conversions of precision.
Lowered require_f32_weights(const Lowering& lowering, ValueId weights);

// The weights of a convolution as its kernel wants them, packed where they have to be.
DraftOperand packed_weights(Lowering& lowering, const kernels::Convolution& convolution,
                            const kernels::KernelInfo& info, ValueId weights, kernels::WeightOrder order,
                            ElementType operand_type);

void append(std::vector<DraftOperand>& inputs, Lowering& lowering, const std::vector<ValueId>& values);

}  // namespace superstep::target::cpu
