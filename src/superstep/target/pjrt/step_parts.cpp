#include "superstep/target/pjrt/step_parts.h"

#include <fmt/format.h>

#include <set>

#include "superstep/transform/border.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::pjrt {
namespace {

using graph::Graph;
using graph::Node;
using graph::Phase;
using graph::ValueId;
using graph::ValueKind;

bool is_before_update(const Graph& step, ValueId id) {
  return step.value(id).kind == ValueKind::computed && transform::phase_of(step, id) != Phase::update;
}

// The update's nodes in a graph of their own; what they read is taken over when it is first met.
class Update {
 public:
  explicit Update(const Graph& step)
      : step_(step), graph_(step.name() + " update"), now_(step.value_count()) {}

  Graph build() {
    take_inputs();
    for (ValueId id : step_.states())
      now_[id.index()] = graph_.add_state(step_.value(id).name, step_.value(id).data);
    for (const Node& node : step_.nodes())
      if (node.phase == Phase::update) take(node);
    for (std::size_t i = 0; i < step_.outputs().size(); ++i)
      if (is_of_update(step_, i)) graph_.add_output(step_.outputs()[i].name, now(step_.outputs()[i].value));
    for (const graph::Update& update : step_.updates())
      graph_.set_update(now(update.state), now(update.next));
    return std::move(graph_);
  }

 private:
  void take_inputs() {
    std::set<ValueId> read;
    for (const Node& node : step_.nodes())
      if (node.phase == Phase::update) read.insert(node.inputs.begin(), node.inputs.end());
    for (const graph::Update& update : step_.updates()) read.insert(update.next);
    for (ValueId id : step_.inputs())
      if (read.contains(id)) take_input(id);
    for (ValueId id : crossing_values(step_)) take_input(id);
  }
  void take_input(ValueId id) { now_[id.index()] = graph_.add_input(step_.value(id).name, step_.type(id)); }

  ValueId now(ValueId id) {
    if (!id.valid()) return {};
    ValueId& now = now_[id.index()];
    if (!now.valid()) now = graph_.add_constant(step_.value(id).name, step_.value(id).data);
    return now;
  }

  void take(const Node& node) {
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(now(id));
    std::vector<graph::ValueType> types;
    std::vector<std::string> names;
    for (ValueId id : node.outputs) {
      types.push_back(id.valid() ? step_.type(id) : graph::ValueType{});
      names.push_back(id.valid() ? step_.value(id).name : "");
    }
    const graph::NodeId made =
        graph_.add_node(node.op, inputs, types, node.attributes, node.name, node.phase, names);
    for (std::size_t i = node.outputs.size(); i-- > 0;)
      if (node.outputs[i].valid())
        now_[node.outputs[i].index()] = graph_.node(made).outputs[i];
      else
        graph_.drop_output(made, static_cast<int>(i));
  }

  const Graph& step_;
  Graph graph_;
  std::vector<ValueId> now_;  // by value of the step
};

}  // namespace

std::vector<ValueId> crossing_values(const Graph& step) {
  std::set<ValueId> crossing;
  const auto look_at = [&](ValueId id) {
    if (id.valid() && is_before_update(step, id)) crossing.insert(id);
  };
  for (const Node& node : step.nodes())
    if (node.phase == Phase::update)
      for (ValueId id : node.inputs) look_at(id);
  for (const graph::Update& update : step.updates()) look_at(update.next);
  return {crossing.begin(), crossing.end()};
}

bool is_of_update(const Graph& step, std::size_t output) {
  const ValueId id = step.outputs()[output].value;
  return step.value(id).kind == ValueKind::computed && !is_before_update(step, id);
}

Graph before_update(const Graph& step) {
  transform::Rewrite rewrite(step);
  rewrite.visit_nodes([&](const Node& node) {
    if (node.phase != Phase::update) rewrite.keep(node);
  });
  for (std::size_t i = 0; i < step.outputs().size(); ++i)
    if (!is_of_update(step, i))
      rewrite.builder().output(step.outputs()[i].name, rewrite.now(step.outputs()[i].value));
  for (ValueId id : crossing_values(step))
    rewrite.builder().output("to update/" + step.value(id).name, rewrite.now(id));
  return transform::prune(rewrite.graph());
}

Graph update_alone(const Graph& step) { return Update(step).build(); }

}  // namespace superstep::target::pjrt
