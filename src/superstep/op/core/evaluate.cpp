#include "superstep/op/core/evaluate.h"

#include <fmt/format.h>

#include "superstep/op/core/definition.h"

namespace superstep::op {
namespace {

std::string label(const graph::Node& node) {
  return node.name.empty() ? node.op : fmt::format("{} '{}'", node.op, node.name);
}

void check_type(const Tensor& given, const graph::Value& value, const char* what) {
  const ValueType type{given.type(), given.shape()};
  if (type != value.type)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is {}, expected {}", to_string(type), to_string(value.type)),
                fmt::format("{} {}", what, value.name));
}

// The tensors of a run. An empty handle (no elements were set) means not yet computed.
class Run {
 public:
  explicit Run(const graph::Graph& graph) : graph_(graph), values_(graph.value_count()) {
    remaining_ = graph.use_counts();
    for (std::size_t i = 0; i < graph.value_count(); ++i)
      if (graph.values()[i].kind == graph::ValueKind::constant) values_[i] = graph.values()[i].data;
  }

  void set(graph::ValueId id, Tensor tensor) { values_[id.index()] = std::move(tensor); }
  const Tensor& get(graph::ValueId id) const { return values_[id.index()]; }

  void execute(const graph::Node& node) {
    std::vector<const Tensor*> inputs;
    for (graph::ValueId id : node.inputs) inputs.push_back(id.valid() ? &get(id) : nullptr);
    std::vector<Tensor> outputs = evaluate_node(graph_, node, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (node.outputs[i].valid()) set(node.outputs[i], std::move(outputs[i]));
    for (graph::ValueId id : node.inputs) release(id);
  }

 private:
  // Frees what no later node, output or update reads.
  void release(graph::ValueId id) {
    if (id.valid() && --remaining_[id.index()] == 0) values_[id.index()] = Tensor();
  }

  const graph::Graph& graph_;
  std::vector<Tensor> values_;
  std::vector<int> remaining_;
};

}  // namespace

std::vector<Tensor> evaluate_node(const graph::Graph& graph, const graph::Node& node,
                                  std::span<const Tensor* const> inputs) {
  const Definition& definition = get(node.op);
  if (!definition.evaluate) throw Error(ErrorCode::unsupported, "has no reference evaluation", label(node));
  std::vector<Tensor> outputs;
  for (graph::ValueId id : node.outputs)
    outputs.push_back(id.valid() ? Tensor(graph.type(id).element, graph.type(id).shape) : Tensor());
  EvaluateContext context{node.attributes, {inputs.begin(), inputs.end()}, {}};
  for (std::size_t i = 0; i < outputs.size(); ++i)
    context.outputs.push_back(node.outputs[i].valid() ? &outputs[i] : nullptr);
  try {
    definition.evaluate(context);
  } catch (const Error& error) {
    throw error.in(label(node));
  }
  return outputs;
}

Evaluation evaluate(const graph::Graph& graph, std::span<const Tensor> inputs,
                    const std::map<std::string, Tensor>& states) {
  if (inputs.size() != graph.inputs().size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("takes {} inputs, {} were given", graph.inputs().size(), inputs.size()),
                graph.name());
  Run run(graph);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_type(inputs[i], graph.value(graph.inputs()[i]), "input");
    run.set(graph.inputs()[i], inputs[i]);
  }
  for (graph::ValueId id : graph.states()) {
    const auto given = states.find(graph.value(id).name);
    const Tensor& data = given == states.end() ? graph.value(id).data : given->second;
    check_type(data, graph.value(id), "state");
    run.set(id, data);
  }
  std::map<std::string, Tensor> after;
  for (graph::ValueId id : graph.states()) after.emplace(graph.value(id).name, run.get(id));
  for (const graph::Node& node : graph.nodes()) run.execute(node);
  Evaluation result;
  for (const graph::Output& output : graph.outputs()) result.outputs.push_back(run.get(output.value));
  for (const graph::Update& update : graph.updates())
    after[graph.value(update.state).name] = run.get(update.next);
  result.states = std::move(after);
  return result;
}

}  // namespace superstep::op
