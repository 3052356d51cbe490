// ONNX files made in memory, field by field.
#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/onnx/model.h"
#include "superstep/onnx/wire/wire.h"

namespace superstep::onnx::testing {

using Names = std::vector<std::string>;

// TensorProto with raw data.
inline Message tensor(const std::string& name, std::int64_t data_type, const std::vector<std::int64_t>& dims,
                      std::string_view raw) {
  Message message;
  for (std::int64_t extent : dims) message.integer(1, extent);
  return message.integer(2, data_type).text(8, name).text(9, raw);
}
inline Message floats(const std::string& name, const std::vector<std::int64_t>& dims,
                      const std::vector<float>& values) {
  return tensor(name, 1, dims, {reinterpret_cast<const char*>(values.data()), values.size() * 4});
}
inline Message integers(const std::string& name, const std::vector<std::int64_t>& dims,
                        const std::vector<std::int64_t>& values) {
  return tensor(name, 7, dims, {reinterpret_cast<const char*>(values.data()), values.size() * 8});
}
inline Message boolean(const std::string& name, bool value) {
  return tensor(name, 9, {}, std::string_view(value ? "\1" : "\0", 1));
}

inline Message attribute(const std::string& name, std::int64_t value) {
  return Message().text(1, name).integer(3, value).integer(20, 2);
}
inline Message attribute(const std::string& name, int value) {
  return attribute(name, static_cast<std::int64_t>(value));
}
inline Message attribute(const std::string& name, float value) {
  return Message().text(1, name).real(2, value).integer(20, 1);
}
inline Message attribute(const std::string& name, const std::string& value) {
  return Message().text(1, name).text(4, value).integer(20, 3);
}
inline Message attribute(const std::string& name, const char* value) {
  return attribute(name, std::string(value));
}
inline Message attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  return Message().text(1, name).packed_integers(8, values).integer(20, 7);
}
inline Message attribute(const std::string& name, const std::vector<float>& values) {
  return Message().text(1, name).packed_reals(7, values).integer(20, 6);
}
inline Message tensor_attribute(const std::string& name, const Message& value) {
  return Message().text(1, name).message(5, value).integer(20, 4);
}
inline Message graph_attribute(const std::string& name, const Message& value) {
  return Message().text(1, name).message(6, value).integer(20, 5);
}
// Takes the value of the enclosing function's attribute.
inline Message attribute_reference(const std::string& name, const std::string& of, int type) {
  return Message().text(1, name).integer(20, type).text(21, of);
}

inline Message node(const std::string& op, const Names& inputs, const Names& outputs,
                    const std::vector<Message>& attributes = {}, const std::string& domain = {}) {
  Message message;
  for (const std::string& input : inputs) message.text(1, input);
  for (const std::string& output : outputs) message.text(2, output);
  message.text(3, "the_" + op).text(4, op);
  for (const Message& attribute : attributes) message.message(5, attribute);
  if (!domain.empty()) message.text(7, domain);
  return message;
}

// An input or output; an extent that is not a number is a symbol, "?" is neither.
inline Message port(const std::string& name, std::int64_t data_type, const Names& extents) {
  Message shape;
  for (const std::string& extent : extents) {
    Message dimension;
    if (extent.find_first_not_of("0123456789") == std::string::npos)
      dimension.integer(1, std::stoll(extent));
    else if (extent != "?")
      dimension.text(2, extent);
    shape.message(1, dimension);
  }
  const Message tensor_type = Message().integer(1, data_type).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, tensor_type));
}

struct GraphParts {
  std::vector<Message> nodes, inputs, outputs, initializers;
};
// A name may be there once in a graph: the second MatMul is "the_MatMul_2".
inline std::vector<Message> named_apart(std::vector<Message> nodes) {
  std::map<std::string, int> seen;
  for (Message& node : nodes) {
    const std::string bytes = node.bytes();
    const std::size_t at = bytes.find("the_");
    if (at == std::string::npos) continue;
    const std::string name = bytes.substr(at, static_cast<unsigned char>(bytes[at - 1]));
    if (const int number = ++seen[name]; number > 1) node.text(3, name + "_" + std::to_string(number));
  }
  return nodes;
}
inline Message graph(const GraphParts& parts, const std::string& name = "test") {
  Message message;
  for (const Message& part : named_apart(parts.nodes)) message.message(1, part);
  message.text(2, name);
  for (const Message& part : parts.initializers) message.message(5, part);
  for (const Message& part : parts.inputs) message.message(11, part);
  for (const Message& part : parts.outputs) message.message(12, part);
  return message;
}

inline Message opset_import(std::int64_t version, const std::string& domain = {}) {
  return Message().text(1, domain).integer(2, version);
}

inline std::string model_bytes(const Message& graph, std::int64_t opset = 17,
                               const std::vector<Message>& functions = {}, const Names& domains = {}) {
  Message message;
  message.integer(1, 8).text(2, "maker").text(3, "1.2").message(7, graph).message(8, opset_import(opset));
  for (const std::string& domain : domains) message.message(8, opset_import(1, domain));
  for (const Message& function : functions) message.message(25, function);
  return message.bytes();
}

inline Model parse(const std::string& bytes) {
  return Model::parse({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, "test.onnx");
}
inline Model parse(const GraphParts& parts, std::int64_t opset = 17) {
  return parse(model_bytes(graph(parts), opset));
}

constexpr std::int64_t f32 = 1, i64 = 7, string = 8, boolean_type = 9;

}  // namespace superstep::onnx::testing
