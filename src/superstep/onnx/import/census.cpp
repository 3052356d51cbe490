#include "superstep/onnx/import/census.h"

#include <algorithm>

#include "superstep/onnx/import/node_order.h"

namespace superstep::onnx {
namespace {

constexpr int deepest_graph = 64;

class Census {
 public:
  void graph(Bytes bytes, int depth) {
    if (depth <= deepest_graph) nodes(parse_graph(bytes).nodes, depth);
  }

  void nodes(const std::vector<Bytes>& all, int depth) {
    for (Bytes bytes : all) try {
        node(parse_node(bytes), depth);
      } catch (const Error&) {
        continue;
      }
  }

  std::vector<OperatorCount> result() const {
    std::vector<OperatorCount> counts;
    for (const auto& [op, count] : counts_) counts.push_back({op, count});
    std::ranges::stable_sort(counts, [](const auto& a, const auto& b) { return a.count > b.count; });
    return counts;
  }

 private:
  void node(const NodeProto& node, int depth) {
    std::string name(node.domain);
    if (!name.empty()) name += '.';
    ++counts_[name += node.op_type];
    for (Bytes bytes : node.attributes)
      if (const AttributeProto attribute = parse_attribute(bytes); attribute.type == AttributeType::graph)
        graph(attribute.message, depth + 1);
  }

  std::map<std::string, std::int64_t> counts_;
};

std::set<std::string_view> names_read(const std::vector<Bytes>& nodes) {
  std::set<std::string_view> names;
  for (Bytes bytes : nodes) try {
      const NodeProto node = parse_node(bytes);
      names.insert(node.inputs.begin(), node.inputs.end());
      for (std::string_view name : names_read_inside(node)) names.insert(name);
    } catch (const Error&) {
      continue;
    }
  return names;
}

}  // namespace

ParameterCount count_parameters(const File& file) {
  const std::set<std::string_view> read = names_read(file.graph.nodes);
  ParameterCount count;
  for (const NamedBytes& initializer : file.graph.initializers) try {
      if (!read.contains(initializer.name)) continue;
      const graph::ValueType type = tensor_type(parse_tensor(initializer.bytes));
      if (!is_floating(type.element)) continue;
      count.elements += type.shape.element_count();
      count.bytes += type.shape.element_count() * static_cast<std::int64_t>(size_in_bytes(type.element));
    } catch (const Error&) {
      continue;
    }
  return count;
}

std::vector<OperatorCount> count_operators(const File& file) {
  Census census;
  census.nodes(file.graph.nodes, 0);
  for (const auto& [key, function] : file.functions) census.nodes(function.nodes, 0);
  return census.result();
}

}  // namespace superstep::onnx
