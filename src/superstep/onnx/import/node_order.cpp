#include "superstep/onnx/import/node_order.h"

#include <map>

namespace superstep::onnx {
namespace {

constexpr std::size_t most_nodes = 2'000'000;
constexpr int deepest_graph = 64;

void append_reads(Bytes graph_bytes, int depth, std::vector<std::string_view>& names) {
  if (depth > deepest_graph) return;
  const GraphProto graph = parse_graph(graph_bytes);
  for (Bytes bytes : graph.nodes) {
    const NodeProto node = parse_node(bytes);
    names.insert(names.end(), node.inputs.begin(), node.inputs.end());
    for (Bytes attribute_bytes : node.attributes)
      if (const AttributeProto attribute = parse_attribute(attribute_bytes);
          attribute.type == AttributeType::graph)
        append_reads(attribute.message, depth + 1, names);
  }
  for (const NamedBytes& output : graph.outputs) names.push_back(output.name);
}

std::map<std::string_view, std::size_t> producers(const std::vector<NodeProto>& nodes) {
  std::map<std::string_view, std::size_t> result;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view output : nodes[i].outputs)
      if (!output.empty()) result.emplace(output, i);
  return result;
}

std::vector<std::vector<std::size_t>> sources(const std::vector<NodeProto>& nodes) {
  const auto producer = producers(nodes);
  std::vector<std::vector<std::size_t>> result(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto add = [&](std::string_view name) {
      const auto found = producer.find(name);
      if (found != producer.end() && found->second != i) result[i].push_back(found->second);
    };
    for (std::string_view name : nodes[i].inputs) add(name);
    for (std::string_view name : names_read_inside(nodes[i])) add(name);
  }
  return result;
}

bool in_order(const std::vector<std::vector<std::size_t>>& sources) {
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (std::size_t source : sources[i])
      if (source > i) return false;
  return true;
}

// Depth first, with a stack of our own: files may have chains of any length.
class Sorter {
 public:
  explicit Sorter(const std::vector<std::vector<std::size_t>>& sources)
      : sources_(sources), state_(sources.size(), State::unseen) {}

  std::vector<std::size_t> run() {
    for (std::size_t i = 0; i < sources_.size(); ++i) visit(i);
    return std::move(order_);
  }

 private:
  enum class State : std::uint8_t { unseen, open, done };

  void visit(std::size_t start) {
    std::vector<std::pair<std::size_t, std::size_t>> stack;
    const auto enter = [&](std::size_t node) {
      if (state_[node] != State::unseen) return;
      state_[node] = State::open;
      stack.emplace_back(node, 0);
    };
    enter(start);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < sources_[node].size()) {
        enter(sources_[node][next++]);
        continue;
      }
      state_[node] = State::done;
      order_.push_back(node);
      stack.pop_back();
    }
  }

  const std::vector<std::vector<std::size_t>>& sources_;
  std::vector<State> state_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::vector<std::string_view> names_read_inside(const NodeProto& node) {
  std::vector<std::string_view> names;
  for (Bytes bytes : node.attributes)
    if (const AttributeProto attribute = parse_attribute(bytes); attribute.type == AttributeType::graph)
      append_reads(attribute.message, 0, names);
  return names;
}

std::vector<NodeProto> ordered_nodes(const std::vector<Bytes>& all_bytes) {
  if (all_bytes.size() > most_nodes)
    throw Error(ErrorCode::unsupported, "a graph has more nodes than can be read");
  std::vector<NodeProto> nodes;
  nodes.reserve(all_bytes.size());
  for (Bytes bytes : all_bytes) nodes.push_back(parse_node(bytes));
  const auto read = sources(nodes);
  if (in_order(read)) return nodes;
  std::vector<NodeProto> sorted;
  for (std::size_t i : Sorter(read).run()) sorted.push_back(std::move(nodes[i]));
  return sorted;
}

}  // namespace superstep::onnx
