#include "superstep/target/cpu/lower/product_target.h"

#include <fmt/format.h>

#include "superstep/target/cpu/lower/operators/lower_elementwise.h"

namespace superstep::target::cpu {

std::expected<ProductTarget, Refusal> target_of(const Lowering& lowering, NodeId product,
                                                const FusionGroup* group, int channel_axis) {
  const Node& node = lowering.graph().node(product);
  ProductTarget target{.product = product,
                       .result = node.outputs[0],
                       .epilogue = {},
                       .operands = {},
                       .name = node.name,
                       .op = node.op};
  if (!group) return target;
  auto match = match_epilogue(lowering, *group, node.outputs[0], channel_axis);
  if (!match) return std::unexpected(match.error());
  target.result = lowering.graph().node(group->root).outputs[0];
  target.epilogue = std::move(match->epilogue);
  target.operands = std::move(match->operands);
  for (NodeId member : group->members) target.op += "+" + lowering.graph().node(member).op;
  return target;
}

Lowered set_operand_strides(const Lowering& lowering, ProductTarget& target, ImageOf* image_of) {
  std::size_t operand = 0;
  for (kernels::EpilogueStep& step : target.epilogue.steps) {
    if (step.reads_tensor()) {
      const auto image = image_of(lowering, target.operands[operand]);
      if (!image) return std::unexpected(image.error());
      step.column_stride = image->column_stride;
      step.row_stride = image->row_stride;
    }
    if (step.reads_input()) ++operand;
  }
  return {};
}

void append(std::vector<DraftOperand>& inputs, Lowering& lowering, const std::vector<ValueId>& values) {
  for (ValueId value : values) inputs.push_back(lowering.read(value));
}

DraftOperand packed_weights(Lowering& lowering, const kernels::Convolution& convolution,
                            const kernels::KernelInfo& info, ValueId weights, kernels::WeightOrder order,
                            ElementType operand_type) {
  const ValueId source = lowering.unrounded(weights);
  // Weights have the type of what they are multiplied with; layouts of pairs are bf16's alone, and what a
  // kernel makes of its own weights has the type of its products.
  const bool pairs = info.weights == kernels::WeightLayout::taps_in_out_pairs ||
                     info.weights == kernels::WeightLayout::taps_out_in_pairs;
  const ElementType element = pairs ? ElementType::bf16 : info.weights.own() ? info.arithmetic : operand_type;
  const auto transfer = kernels::weight_transfer(convolution, info.weights, order, element);
  if (kernels::is_stored_form(transfer)) return lowering.read(source);
  auto pack = kernels::prepare_pack(transfer);
  if (!pack) throw Error(ErrorCode::internal, to_string(pack.error()), "packing of weights");
  const std::size_t bytes = kernels::packed_elements(transfer) * size_in_bytes(transfer.type);
  const std::string tag = fmt::format("{}:{}:{}", kernels::name_of(info.weights), static_cast<int>(order),
                                      superstep::name_of(transfer.type));
  return lowering.packed(source, tag, std::move(*pack), bytes);
}

Lowered require_f32_weights(const Lowering& lowering, ValueId weights) {
  const ElementType element = lowering.element_in_memory(lowering.unrounded(weights));
  if (element == ElementType::f32) return {};
  return refuse("product", fmt::format("weights in {}", superstep::name_of(element)));
}

Lowered prepend_bias(const Lowering& lowering, ValueId bias, ProductTarget& target) {
  if (lowering.type(lowering.unrounded(bias)).element != ElementType::f32)
    return refuse("product", "a bias that is not in f32");
  target.epilogue.steps.insert(target.epilogue.steps.begin(),
                               kernels::EpilogueStep{.op = kernels::EpilogueOp::bias});
  target.operands.insert(target.operands.begin(), lowering.unrounded(bias));
  return {};
}

}  // namespace superstep::target::cpu
