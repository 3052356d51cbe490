#include "superstep/transform/precision/round_products.h"

#include <map>

#include "superstep/op/elementwise/cast.h"
#include "superstep/transform/fuse_elementwise.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

class RoundProducts {
 public:
  explicit RoundProducts(const Graph& model) : rewrite_(model) {}

  Graph run() {
    rewrite_.visit_nodes([&](const Node& node) { visit(node); });
    return rewrite_.finish();
  }

 private:
  void visit(const Node& node) {
    if (!is_fusion_anchor(node.op) || !is_f32(node.outputs[0])) return rewrite_.keep(node);
    std::vector<Var> inputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(is_f32(id) ? rounded(id) : id.valid() ? rewrite_.now(id) : Var());
    const std::vector<Var> outputs =
        rewrite_.builder().node(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (node.outputs[i].valid())
        rewrite_.replace(node.outputs[i], is_f32(node.outputs[i]) ? through_half(outputs[i]) : outputs[i]);
  }

  static Var through_half(Var x) { return op::cast(op::cast(x, ElementType::f16), ElementType::f32); }

  // Once for all readers.
  Var rounded(ValueId id) {
    const auto [place, is_new] = rounded_.try_emplace(id);
    if (is_new) place->second = through_half(rewrite_.now(id));
    return place->second;
  }

  bool is_f32(ValueId id) const { return id.valid() && rewrite_.old().type(id).element == ElementType::f32; }

  Rewrite rewrite_;
  std::map<ValueId, Var> rounded_;
};

}  // namespace

Graph round_products(const Graph& model) { return RoundProducts(model).run(); }

}  // namespace superstep::transform
