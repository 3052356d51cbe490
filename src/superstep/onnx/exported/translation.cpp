#include "superstep/onnx/exported/translation.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep::onnx {
namespace {

constexpr std::int64_t operator_set = 23;  // the first with Attention
constexpr std::int64_t ir_version = 10;

// Fields of onnx.proto.
Message tensor_of(std::int64_t type, const std::vector<std::int64_t>& extents, std::string_view elements) {
  Message tensor;
  if (!extents.empty()) tensor.packed_integers(1, extents);
  tensor.integer(2, type).text(9, elements);
  return tensor;
}

Message attribute_of(const char* name, const Translation::Value& value) {
  Message attribute;
  attribute.text(1, name);
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    attribute.integer(3, *integer).integer(20, 2);
  else if (const auto* real = std::get_if<double>(&value))
    attribute.real(2, static_cast<float>(*real)).integer(20, 1);
  else if (const auto* text = std::get_if<std::string>(&value))
    attribute.text(4, *text).integer(20, 3);
  else
    attribute.packed_integers(8, std::get<std::vector<std::int64_t>>(value)).integer(20, 7);
  return attribute;
}

Message node_of(const char* op, const std::string& name, const Translation::Names& inputs,
                const Translation::Names& outputs) {
  Message node;
  for (const std::string& input : inputs) node.text(1, input);
  for (const std::string& output : outputs) node.text(2, output);
  node.text(3, name).text(4, op);
  return node;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Message port_of(const std::string& name, std::int64_t type, const std::vector<ExportedExtent>& extents) {
  Message shape;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    Message dimension;
    if (extents[axis].value >= 0)
      dimension.integer(1, extents[axis].value);
    else
      dimension.text(2,
                     extents[axis].symbol.empty() ? fmt::format("{}.{}", name, axis) : extents[axis].symbol);
    shape.message(1, dimension);
  }
  Message tensor, holder, port;
  tensor.integer(1, type).message(2, shape);
  holder.message(1, tensor);
  port.text(1, name).message(2, holder);
  return port;
}

}  // namespace

std::string Translation::fresh() { return fmt::format("{}/{}", node_, ++made_); }

void Translation::node(const char* op, const Names& inputs, const Names& outputs,
                       const Attributes& attributes) {
  Names given = inputs;
  while (!given.empty() && given.back().empty()) given.pop_back();
  Message node = node_of(op, node_, given, outputs);
  for (const auto& [name, value] : attributes) node.message(5, attribute_of(name, value));
  graph_.message(1, node);
}

std::string Translation::node1(const char* op, const Names& inputs, const Attributes& attributes) {
  std::string output = fresh();
  node(op, inputs, {output}, attributes);
  return output;
}

std::string Translation::value(const std::string& exported) const {
  if (exported.empty()) return {};
  const auto found = names_.find(exported);
  if (found != names_.end()) return found->second;
  throw Error(ErrorCode::bad_file, fmt::format("it takes '{}', which nothing before it gives", exported));
}

std::string Translation::integers(const std::vector<std::int64_t>& values) {
  const std::string output = fresh();
  Message node = node_of("Constant", node_, {}, {output}), attribute;
  attribute.text(1, "value")
      .message(5, tensor_of(onnx_i64, {static_cast<std::int64_t>(values.size())}, bytes_of(values)))
      .integer(20, 4);
  graph_.message(1, node.message(5, attribute));
  return output;
}

std::string Translation::integer(std::int64_t value) { return number(onnx_i64, static_cast<double>(value)); }

// Of every type by a Cast of f64, which the importer computes at once.
std::string Translation::number(std::int64_t onnx_type, double value) {
  constexpr std::int64_t f64 = 11;
  const std::string output = fresh();
  Message node = node_of("Constant", node_, {}, {output}), attribute;
  attribute.text(1, "value")
      .message(5, tensor_of(f64, {}, bytes_of(std::vector<double>{value})))
      .integer(20, 4);
  graph_.message(1, node.message(5, attribute));
  return onnx_type == f64 ? output : cast(output, onnx_type);
}

std::string Translation::size(const ExportedCall::Size& size) {
  return size.symbol.empty() ? integer(size.value) : value(size.symbol);
}

std::string Translation::sizes(const std::vector<ExportedCall::Size>& sizes) {
  std::vector<std::int64_t> known;
  for (const ExportedCall::Size& each : sizes)
    if (each.symbol.empty()) known.push_back(each.value);
  if (known.size() == sizes.size()) return integers(known);
  Names parts;
  for (const ExportedCall::Size& each : sizes)
    parts.push_back(each.symbol.empty() ? integers({each.value})
                                        : node1("Unsqueeze", {value(each.symbol), integers({0})}));
  return parts.size() == 1 ? parts[0] : node1("Concat", parts, {{"axis", std::int64_t{0}}});
}

std::string Translation::cast(const std::string& value, std::int64_t onnx_type) {
  return node1("Cast", {value}, {{"to", onnx_type}});
}

void Translation::add_weight(const std::string& name, const ExportedProgram::Weight& weight) {
  if (!plain_.insert(name).second) return;
  graph_.message(5, tensor_of(weight.onnx_type, weight.extents, weight.elements).text(8, name));
}

void Translation::add_input(const std::string& name) {
  plain_.insert(name);
  graph_.message(11, port_of(name, program_.type(name).onnx, program_.extents(name)));
  rename(name, name);
}

// What is an input, a weight or another output too gets a node of its own.
void Translation::add_output(const std::string& exported) {
  const std::string from = value(exported);
  std::string name = from;
  if (plain_.contains(from) || outputs_.contains(from)) {
    node_ = "output";
    name = fmt::format("{}.output{}", from, outputs_.size());
    node("Identity", {from}, {name});
  }
  outputs_.insert(name);
  graph_.message(12, port_of(name, program_.type(exported).onnx, program_.extents(exported)));
}

std::string Translation::model_bytes(const std::string& name) {
  Message graph = graph_, model, opset;
  graph.text(2, name);
  opset.text(1, "").integer(2, operator_set);
  model.integer(1, ir_version).text(2, "torch.export").text(3, program_.producer());
  model.message(7, graph).message(8, opset);
  return model.bytes();
}

}  // namespace superstep::onnx
