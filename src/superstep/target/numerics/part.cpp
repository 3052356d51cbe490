#include "superstep/target/numerics/part.h"

#include <algorithm>
#include <map>

namespace superstep::target::numerics {
namespace {

using graph::ValueId;
using graph::ValueKind;

class Cutting {
 public:
  Cutting(const graph::Graph& whole, bool with_states) : whole_(whole), with_states_(with_states) {
    part_.graph.set_name(whole.name());
  }

  void take(const graph::Node& node) {
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(id.valid() ? inside(id) : ValueId());
    std::vector<graph::ValueType> types;
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) {
      types.push_back(id.valid() ? whole_.type(id) : graph::ValueType{});
      names.push_back(id.valid() ? whole_.value(id).name : std::string());
    }
    const graph::NodeId made = part_.graph.add_node(node.op, std::move(inputs), types, node.attributes,
                                                    node.name, node.phase, names);
    for (std::size_t i = node.outputs.size(); i-- > 0;) {
      if (node.outputs[i].valid())
        inside_[node.outputs[i].index()] = part_.graph.node(made).outputs[i],
        made_.push_back(node.outputs[i]);
      else
        part_.graph.drop_output(made, static_cast<int>(i));
    }
  }

  Part finish(const std::vector<int>& read_inside) {
    for (const graph::Update& update : whole_.updates()) {
      const bool ours =
          with_states_ && inside_.contains(update.state.index()) && inside_.contains(update.next.index());
      if (!ours) continue;
      part_.graph.set_update(inside_.at(update.state.index()), inside_.at(update.next.index()));
    }
    const std::vector<int> uses = whole_.use_counts();
    for (const ValueId id : made_) {
      int inside = read_inside[id.index()];
      for (const graph::Update& update : part_.graph.updates())
        if (update.next == inside_.at(id.index())) ++inside;
      if (uses[id.index()] == inside) continue;
      part_.graph.add_output(whole_.value(id).name, inside_.at(id.index()));
      part_.outputs.push_back(id);
    }
    return std::move(part_);
  }

 private:
  ValueId inside(ValueId id) {
    if (const auto found = inside_.find(id.index()); found != inside_.end()) return found->second;
    const graph::Value& value = whole_.value(id);
    ValueId made;
    if (value.kind == ValueKind::constant) {
      made = part_.graph.add_constant(value.name, value.data);
    } else if (value.kind == ValueKind::state && with_states_) {
      made = part_.graph.add_state(value.name, value.data);
      part_.states.push_back(id);
    } else {
      made = part_.graph.add_input(value.name, value.type);
      part_.inputs.push_back(id);
    }
    return inside_[id.index()] = made;
  }

  const graph::Graph& whole_;
  bool with_states_;
  Part part_;
  std::map<std::size_t, ValueId> inside_;
  std::vector<ValueId> made_;
};

}  // namespace

Part part_of(const graph::Graph& whole, std::span<const graph::NodeId> nodes, bool with_states) {
  Cutting cutting(whole, with_states);
  std::vector<int> read(whole.value_count());
  for (const graph::NodeId id : nodes) {
    for (const ValueId input : whole.node(id).inputs)
      if (input.valid()) ++read[input.index()];
    cutting.take(whole.node(id));
  }
  return cutting.finish(read);
}

}  // namespace superstep::target::numerics
