#include "superstep/onnx/import/attribute_values.h"

#include <fmt/format.h>

namespace superstep::onnx {
namespace {

std::vector<std::string> texts(const AttributeProto& proto) {
  std::vector<std::string> result;
  for (std::string_view text : proto.texts) result.emplace_back(text);
  return result;
}

void add_reference(const AttributeProto& proto, const CallAttributes* call, CallAttributes& result) {
  if (!call) throw Error(ErrorCode::bad_file, "refers to an attribute of a function, outside any function");
  const std::string name(proto.name);
  if (const graph::Attribute* value = call->values.find(proto.reference)) result.values.set(name, *value);
  if (const auto found = call->graphs.find(proto.reference); found != call->graphs.end())
    result.graphs[name] = found->second;
}

void add_value(const AttributeProto& proto, const ExternalData& external, CallAttributes& result) {
  const std::string name(proto.name);
  graph::Attributes& values = result.values;
  switch (proto.type) {
    case AttributeType::real: return values.set(name, static_cast<double>(proto.real));
    case AttributeType::integer: return values.set(name, proto.integer);
    case AttributeType::text: return values.set(name, std::string(proto.text));
    case AttributeType::reals:
      return values.set(name, std::vector<double>(proto.reals.begin(), proto.reals.end()));
    case AttributeType::integers: return values.set(name, proto.integers);
    case AttributeType::texts: return values.set(name, texts(proto));
    case AttributeType::tensor: return values.set(name, read_tensor(parse_tensor(proto.message), external));
    case AttributeType::sparse_tensor:
      return values.set(name, read_sparse_tensor(parse_sparse_tensor(proto.message), external));
    case AttributeType::graph: result.graphs[name] = proto.message; return;
    default: throw Error(ErrorCode::unsupported, "is of a kind that no operator here takes");
  }
}

}  // namespace

void add_attribute(const AttributeProto& proto, const CallAttributes* call, const ExternalData& external,
                   CallAttributes& result) {
  try {
    if (proto.reference.empty())
      add_value(proto, external, result);
    else
      add_reference(proto, call, result);
  } catch (const Error& error) {
    throw error.in(fmt::format("attribute '{}'", proto.name));
  }
}

}  // namespace superstep::onnx
