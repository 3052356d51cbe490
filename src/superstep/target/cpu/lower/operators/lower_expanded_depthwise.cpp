// An expansion and the depthwise convolution behind it as one step.
#include "superstep/target/cpu/kernels/depthwise/expanded_depthwise.h"
#include "superstep/target/cpu/lower/operators/lower_convolution.h"

namespace superstep::target::cpu {

using kernels::Convolution;

namespace {

struct DescribedConvolution {
  Convolution convolution;
  ProductTarget target;
};

std::expected<DescribedConvolution, Refusal> described_convolution(const Lowering& lowering, NodeId id,
                                                                   const FusionGroup* group) {
  const Node& node = lowering.graph().node(id);
  auto target = target_of(lowering, id, group, 1);
  if (!target) return std::unexpected(target.error());
  auto convolution = describe_convolution(lowering, node, node.inputs[0], target->result);
  if (!convolution) return std::unexpected(convolution.error());
  if (Lowered weights = require_f32_weights(lowering, node.inputs[1]); !weights)
    return std::unexpected(weights.error());
  if (node.inputs.size() > 2 && node.inputs[2].valid())
    if (Lowered bias = prepend_bias(lowering, node.inputs[2], *target); !bias)
      return std::unexpected(bias.error());
  convolution->epilogue = target->epilogue;
  return DescribedConvolution{std::move(*convolution), std::move(*target)};
}

}  // namespace

bool expands_for_depthwise(const Lowering& lowering, const FusionGroup& group) {
  if (!group.product || lowering.section() != Section::body) return false;
  const Graph& graph = lowering.graph();
  const Node& product = graph.node(*group.product);
  const ValueId result = graph.node(group.root).outputs[0];
  const auto readers = lowering.consumers(result);
  if (product.op != "Conv" || readers.size() != 1 || lowering.leaves_section(result)) return false;
  const Node& reader = graph.node(readers[0]);
  const Shape &shape = lowering.shape(result), &window = lowering.shape(product.inputs[1]);
  const bool pointwise = window.element_count() == window[0] * window[1];
  const ElementType element = lowering.type(result).element;
  return reader.op == "Conv" && reader.inputs[0] == result && shape.rank() == 4 && pointwise &&
         shape[1] > 1 && reader.attributes.integer("group", 1) == shape[1] &&
         product.attributes.integer("group", 1) == 1 &&
         (element == ElementType::f32 || element == ElementType::bf16);
}

Lowered lower_expanded_depthwise(Lowering& lowering, const FusionGroup& expansion, NodeId depthwise,
                                 const FusionGroup* group) {
  auto first = described_convolution(lowering, *expansion.product, &expansion);
  if (!first) return std::unexpected(first.error());
  auto second = described_convolution(lowering, depthwise, group);
  if (!second) return std::unexpected(second.error());
  const kernels::ExpandedDepthwise pair{.expand = first->convolution, .depthwise = second->convolution};
  auto kernel = kernels::prepare(pair);
  if (!kernel) return std::unexpected(kernel.error());
  const Node& product = lowering.graph().node(*expansion.product);
  const auto weights = [&](const DescribedConvolution& part, kernels::WeightLayout layout) {
    // Pairs are bf16 whatever is asked for here.
    return packed_weights(lowering, part.convolution, {.weights = layout},
                          lowering.graph().node(part.target.product).inputs[1],
                          kernels::WeightOrder::out_in_taps, ElementType::f32);
  };
  std::vector<DraftOperand> inputs{lowering.read(product.inputs[0]),
                                   weights(*first, kernels::expansion_layout(pair))};
  append(inputs, lowering, first->target.operands);
  inputs.push_back(weights(*second, kernels::WeightLayout::taps_channels));
  append(inputs, lowering, second->target.operands);
  lowering.emit(first->target.op + "+" + second->target.op, second->target.name, std::move(*kernel),
                std::move(inputs), {lowering.write(second->target.result)});
  return {};
}

}  // namespace superstep::target::cpu
