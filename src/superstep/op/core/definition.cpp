#include "superstep/op/core/definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/base/text.h"

namespace superstep::op {
namespace {

std::map<std::string_view, const Definition*>& index() {
  static auto by_name = [] {
    std::map<std::string_view, const Definition*> map;
    for (const Definition& definition : all()) map.emplace(definition.name, &definition);
    return map;
  }();
  return by_name;
}

Status check_counts(const Definition& definition, const Node& node) {
  const auto count = static_cast<int>(node.inputs.size());
  if (count < definition.min_inputs || (definition.max_inputs >= 0 && count > definition.max_inputs))
    return failure(ErrorCode::bad_graph, fmt::format("takes {} to {} inputs, not {}", definition.min_inputs,
                                                     definition.max_inputs, count));
  for (int i = 0; i < definition.min_inputs; ++i)
    if (!node.inputs[static_cast<std::size_t>(i)].valid())
      return failure(ErrorCode::bad_graph, fmt::format("input {} cannot be left out", i));
  return {};
}

double bytes_of(const ValueType& type) {
  return static_cast<double>(type.shape.element_count()) * static_cast<double>(size_in_bytes(type.element));
}

}  // namespace

const ValueType& InferContext::input(std::size_t position) const {
  if (!has(position)) throw Error(ErrorCode::bad_graph, fmt::format("input {} is left out", position));
  return *inputs[position];
}

std::vector<std::int64_t> InferContext::known_integers(std::size_t position, std::string_view what) const {
  const ValueType& type = input(position);
  if (!is_integer(type.element)) throw Error(ErrorCode::bad_graph, fmt::format("{} must be integers", what));
  const Tensor* data = position < constants.size() ? constants[position] : nullptr;
  if (!data)
    throw Error(ErrorCode::unsupported, fmt::format("{} must be known when the graph is compiled", what), {},
                "bind the model's symbolic dimensions so that shapes are constant");
  const Tensor wide = data->converted(ElementType::i64);
  const auto values = wide.as<std::int64_t>();
  return {values.begin(), values.end()};
}

const Definition* find(std::string_view name) {
  const auto found = index().find(name);
  return found == index().end() ? nullptr : found->second;
}

const Definition& get(std::string_view name) {
  if (const Definition* definition = find(name)) return *definition;
  std::vector<std::string> names;
  for (const Definition& definition : all()) names.emplace_back(definition.name);
  const auto nearest = nearest_name(name, names);
  throw Error(ErrorCode::unsupported, "there is no such operator", std::string(name),
              nearest ? fmt::format("did you mean '{}'?", *nearest) : "'superstep list ops' shows them all");
}

AddedOperator::AddedOperator(const Definition& definition) : definition_(definition) {
  const std::vector<std::string> missing = missing_facts(definition);
  if (!missing.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the definition lacks facts: {}", fmt::join(missing, "; ")),
                std::string(definition.name));
  if (!index().emplace(definition_.name, &definition_).second)
    throw Error(ErrorCode::invalid_argument, "there is an operator of this name",
                std::string(definition.name));
}

AddedOperator::~AddedOperator() { index().erase(definition_.name); }

const Traits& traits_of(std::string_view name) {
  static const Traits unknown;
  const Definition* definition = find(name);
  return definition ? definition->traits : unknown;
}

Result<std::vector<ValueType>> infer_types(const Graph& graph, const Node& node) {
  const Definition* definition = find(node.op);
  if (!definition) return failure(ErrorCode::unsupported, "there is no such operator", node.op);
  if (Status status = check_counts(*definition, node); !status) return std::unexpected(status.error());
  InferContext context{
      .attributes = node.attributes, .inputs = {}, .constants = {}, .output_count = node.outputs.size()};
  for (ValueId id : node.inputs) {
    const graph::Value* value = id.valid() ? &graph.value(id) : nullptr;
    context.inputs.push_back(value ? &value->type : nullptr);
    context.constants.push_back(value && value->kind == graph::ValueKind::constant ? &value->data : nullptr);
  }
  try {
    return definition->infer(context);
  } catch (const Error& error) {
    return std::unexpected(error);
  }
}

Cost cost(const Graph& graph, const Node& node) {
  std::vector<ValueType> inputs, outputs;
  Cost total;
  for (ValueId id : node.inputs) {
    inputs.push_back(id.valid() ? graph.type(id) : ValueType{.element = ElementType::f32, .shape = Shape{0}});
    total.bytes += bytes_of(inputs.back());
  }
  for (ValueId id : node.outputs) {
    outputs.push_back(id.valid() ? graph.type(id)
                                 : ValueType{.element = ElementType::f32, .shape = Shape{0}});
    total.bytes += bytes_of(outputs.back());
  }
  const Definition& definition = get(node.op);
  if (definition.flops)
    total.flops = definition.flops(node.attributes, inputs, outputs);
  else
    for (const ValueType& type : outputs) total.flops += static_cast<double>(type.shape.element_count());
  return total;
}

Cost cost(const Graph& graph) {
  Cost total;
  for (const Node& node : graph.nodes()) {
    const Cost part = cost(graph, node);
    total.flops += part.flops;
    total.bytes += part.bytes;
  }
  return total;
}

}  // namespace superstep::op
