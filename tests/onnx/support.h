// What the tests of this room share: models run by reference evaluation, and errors as text.
#pragma once

#include <gtest/gtest.h>

#include "superstep/op/core/evaluate.h"
#include "tests/contains.h"
#include "tests/onnx/proto_builder.h"

namespace superstep::onnx::testing {

inline std::vector<Tensor> run(const Model& model, const std::vector<Tensor>& inputs,
                               ImportOptions options = {}) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    options.shapes[model.inputs()[i].name] = inputs[i].shape().extents();
  return op::evaluate(model.import(options), inputs).outputs;
}

inline Tensor values(const std::vector<float>& elements) {
  return Tensor::from<float>({static_cast<std::int64_t>(elements.size())}, elements);
}
inline Tensor values(Shape shape, const std::vector<float>& elements) {
  return Tensor::from<float>(std::move(shape), elements);
}

inline std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) result.push_back(tensor.at(i));
  return result;
}

// The text of the Error that `body` throws; empty when it throws none.
template <class Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

using superstep::contains;

// One node of `op` that reads inputs x0, x1, ... of these types and initialisers, and gives y.
struct OneNode {
  std::string op;
  std::int64_t opset = 17;
  std::vector<Message> attributes;
  std::vector<Message> initializers;  // inputs after the first ones, by name
  Names initializer_names;
  std::string domain;
  int outputs = 1;
};

inline Model one_node(const OneNode& one, const std::vector<Tensor>& inputs) {
  GraphParts parts;
  Names names, outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    Names extents;
    for (std::int64_t extent : inputs[i].shape()) extents.push_back(std::to_string(extent));
    const std::int64_t type = inputs[i].type() == ElementType::f32   ? f32
                              : inputs[i].type() == ElementType::i64 ? i64
                                                                     : boolean_type;
    parts.inputs.push_back(port(names.back(), type, extents));
  }
  names.insert(names.end(), one.initializer_names.begin(), one.initializer_names.end());
  for (int i = 0; i < one.outputs; ++i) {
    outputs.push_back("y" + std::to_string(i));
    parts.outputs.push_back(port(outputs.back(), f32, {}));
  }
  parts.initializers = one.initializers;
  parts.nodes = {node(one.op, names, outputs, one.attributes, one.domain)};
  return parse(model_bytes(graph(parts), one.opset, {}, one.domain.empty() ? Names{} : Names{one.domain}));
}

inline std::vector<Tensor> run_node(const OneNode& one, const std::vector<Tensor>& inputs) {
  return run(one_node(one, inputs), inputs);
}
inline std::string refusal(const OneNode& one, const std::vector<Tensor>& inputs) {
  return error_of([&] { one_node(one, inputs).import(); });
}

}  // namespace superstep::onnx::testing
