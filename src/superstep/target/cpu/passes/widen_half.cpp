#include "superstep/target/cpu/passes/widen_half.h"

#include <algorithm>

#include "superstep/op/elementwise/cast.h"
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/passes/decompose.h"
#include "superstep/transform/fuse_elementwise.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::cpu {
namespace {

using op::Var;
using transform::Rewrite;

bool is_half(const graph::Graph& graph, ValueId id) {
  return id.valid() && graph.type(id).element == ElementType::f16;
}

// Those whose kernels know f32 and bf16 alone, and those made of such.
bool has_wide_kernels(std::string_view op) {
  if (transform::is_fusion_anchor(op) || is_composite(op)) return true;
  return std::ranges::any_of(lowerer_families(), [&](const LowererFamily& family) {
    return family.halves == Halves::in_f32 &&
           std::ranges::any_of(family.lowerers, [&](const Lowerer& lowerer) { return lowerer.op == op; });
  });
}

bool is_widened(const graph::Graph& graph, const Node& node) {
  return has_wide_kernels(node.op) &&
         std::ranges::any_of(node.inputs, [&](ValueId id) { return is_half(graph, id); });
}

class WidenHalf {
 public:
  explicit WidenHalf(const graph::Graph& graph) : rewrite_(graph), wide_(graph.value_count()) {}

  graph::Graph run() {
    rewrite_.visit_nodes([&](const Node& node) {
      is_widened(rewrite_.old(), node) ? compute_wide(node) : rewrite_.keep(node);
    });
    return transform::prune(rewrite_.finish());
  }

 private:
  void compute_wide(const Node& node) {
    std::vector<Var> inputs;
    for (ValueId id : node.inputs) inputs.push_back(is_half(rewrite_.old(), id) ? wide(id) : as_it_is(id));
    const std::vector<Var> outputs =
        rewrite_.builder().node(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ValueId old = node.outputs[i];
      if (old.valid())
        rewrite_.replace(old,
                         is_half(rewrite_.old(), old) ? op::cast(outputs[i], ElementType::f16) : outputs[i]);
    }
  }

  Var as_it_is(ValueId id) { return id.valid() ? rewrite_.now(id) : Var(); }

  // One conversion for all readers.
  Var wide(ValueId id) {
    Var& var = wide_[id.index()];
    if (!var.valid()) var = op::cast(rewrite_.now(id), ElementType::f32);
    return var;
  }

  Rewrite rewrite_;
  std::vector<Var> wide_;  // by old value: its f32 form
};

}  // namespace

graph::Graph widen_half(const graph::Graph& graph) {
  const bool any =
      std::ranges::any_of(graph.nodes(), [&](const Node& node) { return is_widened(graph, node); });
  return any ? WidenHalf(graph).run() : graph;
}

}  // namespace superstep::target::cpu
