#include <algorithm>

#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/transform/border.h"
#include "superstep/transform/passes.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

// A constant of this size may be made out of nothing; a larger one only out of as many bytes.
constexpr double free_bytes = 4096;
// The reference evaluation is slow: what takes longer is left to the target, at every run.
constexpr double most_flops = 1e8;

double bytes_of(const graph::ValueType& type) {
  return static_cast<double>(type.shape.element_count()) * static_cast<double>(size_in_bytes(type.element));
}

class Folder {
 public:
  // `of_states`: what states hold is taken for constant, where nothing updates them.
  explicit Folder(const Graph& old, bool of_states = false)
      : rewrite_(old), gradient_(gradient_values(old)), known_(old.value_count(), false) {
    for (std::size_t i = 0; i < known_.size(); ++i) {
      const graph::ValueKind kind = old.values()[i].kind;
      known_[i] = kind == graph::ValueKind::constant || (of_states && kind == graph::ValueKind::state);
    }
    for (const graph::Update& update : old.updates()) known_[update.state.index()] = false;
  }

  bool run(Graph& graph) {
    rewrite_.visit_nodes([&](const Node& node) { visit(node); });
    if (!changed_) return false;
    graph = prune(rewrite_.finish());
    return true;
  }

 private:
  void visit(const Node& node) {
    if (is_gradient(node)) return rewrite_.keep(node);
    if (node.op == "Shape" || node.op == "Size") return fold_shape(node);
    if (!can_fold(node)) return rewrite_.keep(node);
    std::vector<const Tensor*> inputs;
    for (ValueId id : node.inputs) inputs.push_back(id.valid() ? data_of(id) : nullptr);
    set_outputs(node, op::evaluate_node(rewrite_.old(), node, inputs));
  }

  bool is_gradient(const Node& node) const {
    return std::ranges::any_of(node.outputs, [&](ValueId id) { return id.valid() && gradient_[id.index()]; });
  }

  // What is known of an old value: the elements of the constant (or state) that it is or has become.
  const Tensor* data_of(ValueId id) {
    if (known_[id.index()]) return &rewrite_.old().value(id).data;
    const graph::Value& value = rewrite_.graph().value(rewrite_.now(id).id());
    return value.kind == graph::ValueKind::constant ? &value.data : nullptr;
  }

  bool can_fold(const Node& node) {
    if (op::get(node.op).has_effects) return false;
    double in = 0, out = 0;
    for (ValueId id : node.inputs) {
      if (!id.valid()) continue;
      if (!data_of(id)) return false;
      in += bytes_of(rewrite_.old().type(id));
    }
    for (ValueId id : node.outputs) out += id.valid() ? bytes_of(rewrite_.old().type(id)) : 0;
    return out <= std::max(in, free_bytes) && op::cost(rewrite_.old(), node).flops <= most_flops;
  }

  // The shape of a value is known though its elements are not.
  void fold_shape(const Node& node) {
    const Tensor stand_in = shape_of(node);
    set_outputs(node, std::span(&stand_in, 1));
  }

  Tensor shape_of(const Node& node) {
    const Shape& shape = rewrite_.old().type(node.inputs[0]).shape;
    if (node.op == "Size") return Tensor::scalar<std::int64_t>(shape.element_count());
    const auto clamp = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + shape.rank() : at, 0, shape.rank());
    };
    const std::int64_t start = clamp(node.attributes.integer("start", 0));
    const std::int64_t end = std::max(start, clamp(node.attributes.integer("end", shape.rank())));
    const std::vector<std::int64_t> extents(shape.begin() + start, shape.begin() + end);
    return Tensor::from<std::int64_t>({end - start}, extents);
  }

  void set_outputs(const Node& node, std::span<const Tensor> values) {
    std::vector<Var> outputs;
    for (const Tensor& value : values) outputs.push_back(rewrite_.builder().constant(value));
    rewrite_.replace(node, outputs);
    changed_ = true;
  }

  Rewrite rewrite_;
  std::vector<bool> gradient_;  // by old value
  std::vector<bool> known_;     // by old value: its data are what it will hold
  bool changed_ = false;
};

}  // namespace

bool fold_constants(Graph& graph) { return Folder(graph).run(graph); }

bool fold_parameters(Graph& graph) { return Folder(graph, true).run(graph); }

}  // namespace superstep::transform
