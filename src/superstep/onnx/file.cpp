#include "superstep/onnx/file.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/onnx/import_options.h"
#include "superstep/onnx/wire/element.h"

namespace superstep::onnx {
namespace {

void check_versions(const File& file) {
  if (file.model.ir_version > newest_ir_version)
    throw Error(ErrorCode::unsupported,
                fmt::format("IR version {} is newer than the newest that is read, {}", file.model.ir_version,
                            newest_ir_version),
                {}, "export it for an older version");
  if (!file.model.has_graph || file.model.ir_version < 1)
    throw Error(ErrorCode::bad_file, "has no graph", {}, "the file is damaged, cut off, or not an ONNX file");
  const auto found = file.opsets.find("");
  if (found == file.opsets.end()) return;  // a model whose nodes are all of other domains
  if (found->second < oldest_opset || found->second > newest_opset)
    throw Error(ErrorCode::unsupported,
                fmt::format("operator set {} is outside those that are read, {} to {}", found->second,
                            oldest_opset, newest_opset),
                {}, "export it for another operator set");
}

std::string sparse_name(Bytes bytes) {
  return std::string(parse_tensor(parse_sparse_tensor(bytes).values).name);
}

void require_inputs(const File& file, const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const NamedBytes& input : file.graph.inputs) names.emplace_back(input.name);
  for (const std::string& name : given)
    if (std::ranges::find(names, name) == names.end())
      throw Error(ErrorCode::invalid_argument, "the model has no such input", name,
                  unknown_name_hint(name, names));
}

void describe_ports(File& file, const std::vector<std::string>& given) {
  require_inputs(file, given);
  for (const NamedBytes& initializer : file.graph.initializers) file.initialized.insert(initializer.name);
  std::set<std::string> sparse;
  for (Bytes bytes : file.graph.sparse_initializers) sparse.insert(sparse_name(bytes));
  for (const NamedBytes& input : file.graph.inputs) {
    const std::string name(input.name);
    const bool has_default = file.initialized.contains(input.name) || sparse.contains(name);
    const bool stands = has_default && std::ranges::find(given, name) == given.end();
    (stands ? file.defaults : file.inputs).push_back(make_port(parse_value_info(input.bytes)));
  }
  for (const NamedBytes& output : file.graph.outputs)
    file.outputs.push_back(make_port(parse_value_info(output.bytes)));
}

}  // namespace

std::string function_key(std::string_view domain, std::string_view name, std::string_view overload) {
  return fmt::format("{}\n{}\n{}", domain, name, overload);
}

Port make_port(const ValueInfoProto& info) {
  Port port{.name = std::string(info.name), .type = to_string(info.type), .doc = std::string(info.doc)};
  if (info.type.kind != TypeKind::tensor) return port;
  port.element = element_type(info.type.element);
  port.has_shape = info.type.has_shape;
  for (const Dimension& dimension : info.type.dimensions)
    port.extents.push_back({dimension.value, std::string(dimension.symbol)});
  return port;
}

void describe(File& file, Bytes bytes, const std::vector<std::string>& given) {
  file.model = parse_model(bytes);
  for (const OpsetImport& opset : file.model.opsets) {
    std::int64_t& version = file.opsets[std::string(opset.domain)];
    version = std::max(version, opset.version);
  }
  check_versions(file);
  file.graph = parse_graph(file.model.graph);
  for (const TextPair& pair : file.model.metadata) file.metadata.emplace(pair.key, pair.value);
  for (Bytes function_bytes : file.model.functions) {
    FunctionProto function = parse_function(function_bytes);
    if (function.name.empty()) throw Error(ErrorCode::bad_file, "a function has no name");
    const std::string key = function_key(function.domain, function.name, function.overload);
    file.functions.emplace(key, std::move(function));
  }
  describe_ports(file, given);
}

}  // namespace superstep::onnx
