#include "superstep/onnx/import/node_import.h"

#include <fmt/format.h>

#include "superstep/op/core/checks.h"

namespace superstep::onnx {

void refuse_node(const std::string& reason, const std::string& hint) {
  throw Error(ErrorCode::unsupported, reason, {}, hint);
}

Var NodeImport::input(std::size_t position) const {
  if (!has(position)) throw Error(ErrorCode::bad_graph, fmt::format("input {} is missing", position));
  return inputs[position];
}

const Tensor& NodeImport::known(std::size_t position, std::string_view name) {
  if (const Tensor* data = emitter.known(input(position))) return *data;
  refuse_node(fmt::format("input {} must be known at import, but depends on the model's inputs", name),
              "give the elements of the inputs it depends on");
}

std::vector<std::int64_t> NodeImport::known_integers(std::size_t position, std::string_view name) {
  const Tensor& data = known(position, name);
  if (!is_integer(data.type()))
    throw Error(ErrorCode::bad_graph, fmt::format("input {} must be integers", name));
  return op::integers_of(data);
}

std::int64_t NodeImport::known_integer(std::size_t position, std::string_view name) {
  const Tensor& data = known(position, name);
  if (data.element_count() != 1)
    throw Error(ErrorCode::bad_graph, fmt::format("input {} must have one element", name));
  return op::integers_of(data.converted(ElementType::i64))[0];
}

std::int64_t NodeImport::take_integer(std::string_view name, std::int64_t otherwise) {
  const std::int64_t value = attributes.integer(name, otherwise);
  attributes.erase(name);
  return value;
}

double NodeImport::take_number(std::string_view name, double otherwise) {
  const double value = attributes.number(name, otherwise);
  attributes.erase(name);
  return value;
}

std::vector<std::int64_t> NodeImport::take_integers(std::string_view name) {
  std::vector<std::int64_t> values = attributes.integers(name);
  attributes.erase(name);
  return values;
}

void NodeImport::set_input(std::size_t position, Var value) {
  if (inputs.size() <= position) inputs.resize(position + 1);
  inputs[position] = value;
}

}  // namespace superstep::onnx
