// Element-wise operators: broadcasting before operator set 7, attributes that became inputs.
#include <fmt/format.h>

#include "superstep/onnx/adapters/adapters.h"
#include "superstep/onnx/wire/element.h"
#include "superstep/op/core/checks.h"

namespace superstep::onnx {
namespace {

// Before operator set 7 the second operand was broadcast only when asked for, its axes laid to the first
// operand's from `axis` on (default: to the last ones).
std::vector<Var> legacy_broadcast(NodeImport& node) {
  const bool broadcast = node.take_integer("broadcast", 0) != 0;
  const bool has_axis = node.attributes.has("axis");
  const std::int64_t given = node.take_integer("axis", 0);
  const Var a = node.input(0), b = node.input(1);
  if (!broadcast && a.shape() != b.shape())
    throw Error(ErrorCode::bad_graph,
                fmt::format("shapes {} and {} differ, and broadcasting is not asked for",
                            superstep::to_string(a.shape()), superstep::to_string(b.shape())));
  if (has_axis && b.shape().rank() > 0) {
    const int rank = a.shape().rank(), axis = op::checked_axis(given, rank);
    if (axis + b.shape().rank() > rank)
      throw Error(ErrorCode::bad_graph, fmt::format("axis {} leaves no room for the second operand", given));
    std::vector<std::int64_t> extents = b.shape().extents();
    extents.resize(static_cast<std::size_t>(rank - axis), 1);
    node.set_input(1, node.emitter.reshape(b, Shape(extents)));
  }
  return node.pass();
}

// A slope a channel, along axis 1.
std::vector<Var> legacy_prelu(NodeImport& node) {
  const Var x = node.input(0), slope = node.input(1);
  if (slope.shape().rank() == 1 && x.shape().rank() > 1 && slope.shape()[0] != 1) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(x.shape().rank() - 1), 1);
    extents[0] = slope.shape()[0];
    node.set_input(1, node.emitter.reshape(slope, Shape(extents)));
  }
  return node.pass();
}

std::vector<Var> clip_attributes(NodeImport& node) {
  const ElementType type = node.input(0).element();
  for (const auto& [name, position] : {std::pair("min", 1u), std::pair("max", 2u)})
    if (node.attributes.has(name))
      node.set_input(position, node.emitter.scalar(type, node.take_number(name, 0)));
  return node.pass();
}

// Before operator set 12 a file had no way to ask for training but its writer's intent; what is imported is
// the model at inference.
std::vector<Var> dropout_attributes(NodeImport& node) {
  node.attributes.erase("is_test");
  node.attributes.erase("ratio");
  node.inputs.resize(1);
  std::vector<Var> outputs = node.pass();
  constexpr std::int64_t first_boolean_mask = 10;
  if (node.wants(1) && node.opset < first_boolean_mask)
    outputs[1] = node.emitter.emit1("CastLike", {outputs[1], node.input(0)});
  return outputs;
}

std::vector<Var> alias(NodeImport& node) { return {node.input(0)}; }

// The first operator set named the type in words.
std::vector<Var> named_cast(NodeImport& node) {
  const graph::Attribute* to = node.attributes.find("to");
  if (!to) throw Error(ErrorCode::bad_graph, "attribute 'to' is missing");
  if (const auto* name = std::get_if<std::string>(to)) {
    const auto type = data_type_from_name(*name);
    if (!type) throw Error(ErrorCode::bad_graph, fmt::format("there is no type '{}'", *name));
    node.attributes.set("to", static_cast<std::int64_t>(*type));
  }
  required_element_type(node.attributes.integer("to"));
  return node.pass();
}

std::vector<Var> checked_cast(NodeImport& node) {
  required_element_type(node.attributes.integer("to"));
  return node.pass();
}

// Powers, minima and sums of mixed kinds were never valid; a single operand is itself.
std::vector<Var> variadic(NodeImport& node) {
  if (node.inputs.size() == 1) return {node.input(0)};
  return node.pass();
}

constexpr std::int64_t oldest = 1, last_legacy = 6;

constexpr Adapter table[] = {
    {"Add", oldest, last_legacy, legacy_broadcast},
    {"Sub", oldest, last_legacy, legacy_broadcast},
    {"Mul", oldest, last_legacy, legacy_broadcast},
    {"Div", oldest, last_legacy, legacy_broadcast},
    {"Pow", oldest, last_legacy, legacy_broadcast},
    {"And", oldest, last_legacy, legacy_broadcast},
    {"Or", oldest, last_legacy, legacy_broadcast},
    {"Xor", oldest, last_legacy, legacy_broadcast},
    {"Equal", oldest, last_legacy, legacy_broadcast},
    {"Greater", oldest, last_legacy, legacy_broadcast},
    {"Less", oldest, last_legacy, legacy_broadcast},
    {"PRelu", oldest, 8, legacy_prelu},
    {"Clip", oldest, 10, clip_attributes},
    {"Dropout", oldest, 11, dropout_attributes},
    {"Identity", oldest, any_later, alias},
    {"Cast", oldest, 5, named_cast},
    {"Cast", 6, any_later, checked_cast},
    {"Sum", oldest, any_later, variadic},
    {"Mean", oldest, any_later, variadic},
    {"Max", oldest, any_later, variadic},
    {"Min", oldest, any_later, variadic},
};

}  // namespace

std::span<const Adapter> elementwise_adapters() { return table; }

}  // namespace superstep::onnx
