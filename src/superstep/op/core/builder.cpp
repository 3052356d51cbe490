#include "superstep/op/core/builder.h"

#include <fmt/format.h>

#include "superstep/op/core/definition.h"

namespace superstep::op {

const graph::ValueType& Var::type() const { return builder_->graph().type(id_); }

Var Builder::input(std::string name, ElementType element, Shape shape) {
  return {this, graph_.add_input(std::move(name), {element, std::move(shape)})};
}
Var Builder::state(std::string name, Tensor initial) {
  return {this, graph_.add_state(std::move(name), std::move(initial))};
}
Var Builder::constant(Tensor data, std::string name) {
  return {this, graph_.add_constant(std::move(name), std::move(data))};
}
Var Builder::scalar(ElementType element, double value) { return constant(Tensor::full(element, {}, value)); }
Var Builder::integers(const std::vector<std::int64_t>& values) {
  return constant(Tensor::from<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
}
Var Builder::zeros_like(Var value) { return constant(Tensor(value.element(), value.shape())); }
void Builder::output(std::string name, Var value) { graph_.add_output(std::move(name), value.id()); }
void Builder::update(Var state, Var next) { graph_.set_update(state.id(), next.id()); }

std::vector<Var> Builder::node(std::string_view op, std::span<const Var> inputs, graph::Attributes attributes,
                               int outputs, std::span<const std::string> output_names) {
  graph::Node candidate{.op = std::string(op),
                        .name = name_,
                        .inputs = {},
                        .outputs = {},
                        .attributes = std::move(attributes),
                        .phase = phase_};
  for (const Var& input : inputs) candidate.inputs.push_back(input.id());
  while (!candidate.inputs.empty() && !candidate.inputs.back().valid()) candidate.inputs.pop_back();
  candidate.outputs.resize(static_cast<std::size_t>(outputs));
  auto types = infer_types(graph_, candidate);
  if (!types) throw types.error().in(name_.empty() ? candidate.op : fmt::format("{} '{}'", op, name_));
  types->resize(std::min(types->size(), static_cast<std::size_t>(outputs)));
  const NodeId id = graph_.add_node(std::move(candidate.op), std::move(candidate.inputs), *types,
                                    std::move(candidate.attributes), name_, phase_, output_names);
  std::vector<Var> results;
  for (ValueId output : graph_.node(id).outputs) results.push_back({this, output});
  return results;
}

Var Builder::node1(std::string_view op, std::initializer_list<Var> inputs, graph::Attributes attributes) {
  return node(op, std::span(inputs.begin(), inputs.size()), std::move(attributes)).at(0);
}

}  // namespace superstep::op
