// Which way of lowering is tried for which node, in order.
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/lower/operators/lower_elementwise.h"
#include "superstep/target/cpu/lower/operators/lower_integer.h"
#include "superstep/target/cpu/lower/operators/lower_product.h"
#include "superstep/target/cpu/lower/operators/lower_sums.h"

namespace superstep::target::cpu {
namespace {

bool tried(Lowering& lowering, Lowered result) {
  if (!result) lowering.note_refusal(result.error());
  return result.has_value();
}

void lower_members(Lowering& lowering, const FusionGroup& group) {
  if (tried(lowering, lower_elementwise_group(lowering, group))) return;
  for (NodeId member : group.members) lower_single(lowering, member);
}

// A product together with the group in front of it that waited for it; else that group first. Says whether
// the product is done.
bool lower_with_deferred(Lowering& lowering, NodeId product, const FusionGroup* group) {
  const FusionGroup* waiting = lowering.take_deferred(lowering.graph().node(product).inputs[0]);
  if (!waiting) return false;
  if (tried(lowering, lower_expanded_depthwise(lowering, *waiting, product, group))) return true;
  lower_group_alone(lowering, *waiting);
  return false;
}

// A sum over the positions of an image together with what makes it, where that waited for it.
bool lower_sums_with_deferred(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const FusionGroup* waiting = node.inputs.empty() ? nullptr : lowering.take_deferred(node.inputs[0]);
  if (!waiting) return false;
  if (tried(lowering, lower_sums_of_group(lowering, *waiting, id))) return true;
  lower_group_alone(lowering, *waiting);
  return false;
}

}  // namespace

void lower_single(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  if (node.op == "Conv" ? lower_with_deferred(lowering, id, nullptr) : lower_sums_with_deferred(lowering, id))
    return;
  if (is_fusable_product(node) && tried(lowering, lower_product(lowering, id, nullptr))) return;
  for (const LowererFamily& family : lowerer_families())
    for (const Lowerer& lowerer : family.lowerers)
      if (lowerer.op == node.op && tried(lowering, lowerer.lower(lowering, id))) return;
  lower_by_reference(lowering, id);
}

void lower_group_alone(Lowering& lowering, const FusionGroup& group) {
  if (group.product) {
    const bool integer = is_dequantized_product(lowering.graph(), lowering.graph().node(*group.product));
    if (tried(lowering, integer ? lower_dequantized_product(lowering, *group.product, &group)
                                : lower_product(lowering, *group.product, &group)))
      return;
    lower_single(lowering, *group.product);
    lowering.clear_refusals();
  }
  lower_members(lowering, group);
}

void lower_group(Lowering& lowering, const FusionGroup& group) {
  if (expands_for_depthwise(lowering, group) || feeds_sums(lowering, group))
    return lowering.defer(lowering.graph().node(group.root).outputs[0], group);
  if (group.product && lower_with_deferred(lowering, *group.product, &group)) return;
  lower_group_alone(lowering, group);
}

}  // namespace superstep::target::cpu
