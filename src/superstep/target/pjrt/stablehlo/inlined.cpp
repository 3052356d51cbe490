#include "superstep/target/pjrt/stablehlo/inlined.h"

#include "superstep/base/error.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"
#include "superstep/target/pjrt/stablehlo/program.h"
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
  for (const Node& node : graph_.nodes()) lower(node);
}

const Value& NodesInProgram::value(ValueId id) {
  Value& found = values_[id.index()];
  if (!found.valid()) found = emit_.constant(graph_.value(id).data);
  return found;
}

void NodesInProgram::lower(const Node& node) {
  Site site{emit_, graph_, node, {}, first_row_, &uses_};
  for (ValueId id : node.inputs) site.inputs.push_back(id.valid() ? value(id) : Value());
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
