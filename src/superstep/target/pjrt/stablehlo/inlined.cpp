#include "superstep/target/pjrt/stablehlo/inlined.h"

#include "superstep/base/error.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"
#include "superstep/target/pjrt/stablehlo/program.h"
#include "superstep/target/pjrt/stablehlo/settled.h"
#include "superstep/transform/pipeline.h"

namespace superstep::target::stablehlo {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

// Of each value, whether it is compared with another floating one for equality, as derivatives of extremes
// are where the extreme came from. A compiler may compute a value once in every loop that reads it, rounded
// in other ways: then the extreme equals nothing.
std::vector<bool> compared_values(const Graph& graph) {
  std::vector<bool> compared(graph.value_count(), false);
  for (const Node& node : graph.nodes())
    if (node.op == "Equal")
      for (ValueId id : node.inputs)
        if (is_floating(graph.type(id).element)) compared[id.index()] = true;
  return compared;
}

}  // namespace

NodesInProgram::NodesInProgram(Emitter& emit, const Graph& graph, std::int64_t first_row)
    : emit_(emit),
      graph_(graph),
      first_row_(first_row),
      values_(graph.value_count()),
      compared_(compared_values(graph)),
      uses_(graph.use_counts()) {}

void NodesInProgram::lower() {
  for (const Node& node : graph_.nodes())
    if (!settled_ || !settled_->takes(node)) lower(node);
}

const Value& NodesInProgram::value(ValueId id) {
  if (!values_[id.index()].valid()) {
    Value made = made_elsewhere(id);
    if (made.valid()) values_[id.index()] = std::move(made);
  }
  return values_[id.index()];
}

// Views of what is settled cost nothing here, and would be copies there.
Value NodesInProgram::made_elsewhere(ValueId id) {
  if (!settled_ || graph_.value(id).kind == graph::ValueKind::constant)
    return emit_.constant(graph_.value(id).data);
  if (const Node* const view = settled_->view_of(id)) {
    lower(*view);
    return {};
  }
  return settled_->value(id);
}

// A kernel that is settled is asked for in the form that its operator wants.
Value NodesInProgram::input_of(const Node& node, std::size_t input) {
  const ValueId id = node.inputs[input];
  if (!id.valid()) return {};
  const Lowering* const lowering = find_lowering(node.op);
  const bool asked_for = settled_ && lowering && lowering->kernel == static_cast<int>(input);
  if (asked_for && settled_->holds(id)) return {"%settled", {graph_.type(id).element, graph_.type(id).shape}};
  return value(id);
}

void NodesInProgram::lower(const Node& node) {
  Site site{emit_, graph_, node, {}, first_row_, &uses_, settled_};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) site.inputs.push_back(input_of(node, i));
  const std::vector<Value> results = lower_node(site);
  for (std::size_t i = 0; i < node.outputs.size() && i < results.size(); ++i)
    if (node.outputs[i].valid())
      values_[node.outputs[i].index()] =
          compared_[node.outputs[i].index()] ? emit_.unary("optimization_barrier", results[i]) : results[i];
}

InlinedGraph::InlinedGraph(Graph graph) : graph_(transform::run_passes(std::move(graph), program_passes())) {}

std::vector<Value> InlinedGraph::operator()(Emitter& emit, std::span<const Value> inputs) const {
  if (inputs.size() != graph_.inputs().size())
    throw Error(ErrorCode::internal, "a graph inside a program has other inputs", graph_.name());
  NodesInProgram nodes(emit, graph_);
  for (std::size_t i = 0; i < inputs.size(); ++i) nodes.set(graph_.inputs()[i], inputs[i]);
  nodes.lower();
  std::vector<Value> results;
  for (const graph::Output& output : graph_.outputs()) results.push_back(nodes.value(output.value));
  return results;
}

}  // namespace superstep::target::stablehlo
