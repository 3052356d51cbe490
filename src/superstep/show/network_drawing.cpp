#include "superstep/show/network_drawing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>

#include "superstep/base/text.h"

namespace superstep::show {
namespace {

using graph::Graph;
using graph::ValueId;
using page::NetworkNode;

constexpr std::size_t most_boxes = 80;   // chosen: a few screens
constexpr std::size_t least_blocks = 8;  // fewer say nothing of a network

// A node's number in the graph's order of each value; none of what is given.
std::vector<std::size_t> producers_of(const Graph& graph) {
  std::vector<std::size_t> producers(graph.value_count(), graph.node_count());
  for (std::size_t i = 0; i < graph.value_count(); ++i)
    if (const graph::NodeId id = graph.values()[i].producer; id.valid()) producers[i] = id.index();
  return producers;
}

// How many values pass from nodes up to each one to nodes behind it.
std::vector<std::size_t> passing(const Graph& graph) {
  const std::vector<std::size_t> producers = producers_of(graph);
  std::vector<std::size_t> last(graph.value_count(), 0);
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    for (const ValueId id : graph.nodes()[i].inputs)
      if (id.valid()) last[id.index()] = i;
  std::vector<std::size_t> counts(graph.node_count(), 0);
  for (std::size_t value = 0; value < graph.value_count(); ++value) {
    const bool given = graph.values()[value].kind == graph::ValueKind::input;
    for (std::size_t i = given ? 0 : producers[value]; i < last[value]; ++i) ++counts[i];
  }
  return counts;
}

// The last node of each block, in order.
std::vector<std::size_t> ends_of_blocks(const Graph& graph) {
  const std::size_t n = graph.node_count();
  std::vector<std::size_t> ends;
  if (n <= most_boxes) {
    for (std::size_t i = 0; i < n; ++i) ends.push_back(i);
    return ends;
  }
  const std::vector<std::size_t> counts = passing(graph);
  const std::size_t most = std::ranges::max(counts);
  for (std::size_t width = 1; width <= most && ends.size() < least_blocks; ++width) {
    ends.clear();
    for (std::size_t i = 0; i + 1 < n; ++i)
      if (counts[i] <= width) ends.push_back(i);
  }
  ends.push_back(n - 1);
  // Too many of them are joined to blocks of about as many nodes.
  if (ends.size() <= most_boxes) return ends;
  std::vector<std::size_t> joined;
  for (const std::size_t end : ends)
    if (joined.size() * n <= end * most_boxes || end + 1 == n) joined.push_back(end);
  return joined;
}

std::string short_name(const std::string& op) { return op.substr(op.rfind('.') + 1); }

std::string shape_of(const Graph& graph, const graph::Node& node) {
  return node.outputs.empty() || !node.outputs[0].valid() ? "" : to_string(graph.type(node.outputs[0]));
}

// "Conv x3, Relu x3, Add"
std::string operators_of(const Graph& graph, std::size_t first, std::size_t end) {
  std::vector<std::string> names;
  std::map<std::string, int> counts;
  for (std::size_t i = first; i <= end; ++i) {
    const std::string name = short_name(graph.nodes()[i].op);
    if (counts[name]++ == 0) names.push_back(name);
  }
  for (std::string& name : names)
    if (const int count = counts[name]; count > 1) name += fmt::format(" x{}", count);
  return join(names, ", ");
}

// What fits into a line: numbers, words and lists of whole numbers.
std::string text_of(const graph::Attribute& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:g}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value))
    return fmt::format("[{}]", fmt::join(*numbers, ", "));
  return "...";
}

std::string hint_of(const graph::Node& node, const std::string& shape) {
  std::string hint = fmt::format("{}\n{} {}", node.name, node.op, shape);
  for (const auto& [name, value] : node.attributes) hint += fmt::format("\n{} = {}", name, text_of(value));
  return hint;
}

NetworkNode box_of(const Graph& graph, std::size_t first, std::size_t end) {
  const graph::Node& last = graph.nodes()[end];
  const std::string shape = shape_of(graph, last);
  if (first == end)
    return {.title = short_name(last.op), .text = shape, .hint = hint_of(last, shape), .reads = {}};
  const std::string operators = operators_of(graph, first, end);
  return {.title = fmt::format("{} nodes: {}", end - first + 1,
                               operators.substr(0, operators.find(',')) +
                                   (operators.find(',') != operators.npos ? ", ..." : "")),
          .text = shape,
          .hint = fmt::format("nodes {} to {}, {} to {}\n{}\n{}", first + 1, end + 1,
                              graph.nodes()[first].name, last.name, operators, shape),
          .reads = {}};
}

}  // namespace

std::vector<NetworkNode> network_of(const Graph& graph) {
  std::vector<NetworkNode> boxes;
  std::vector<std::size_t> box_of_value(graph.value_count(), SIZE_MAX);
  for (const ValueId id : graph.inputs()) {
    box_of_value[id.index()] = boxes.size();
    boxes.push_back(
        {.title = graph.value(id).name, .text = to_string(graph.type(id)), .hint = "input", .reads = {}});
  }
  const auto read = [&](NetworkNode& box, ValueId id, std::size_t own) {
    const std::size_t from = id.valid() ? box_of_value[id.index()] : SIZE_MAX;
    if (from != SIZE_MAX && from != own && std::ranges::find(box.reads, from) == box.reads.end())
      box.reads.push_back(from);
  };
  std::size_t first = 0;
  for (const std::size_t end : ends_of_blocks(graph)) {
    NetworkNode box = box_of(graph, first, end);
    for (; first <= end; ++first) {
      for (const ValueId id : graph.nodes()[first].inputs) read(box, id, boxes.size());
      for (const ValueId id : graph.nodes()[first].outputs)
        if (id.valid()) box_of_value[id.index()] = boxes.size();
    }
    boxes.push_back(std::move(box));
  }
  for (const graph::Output& output : graph.outputs()) {
    NetworkNode box{
        .title = output.name, .text = to_string(graph.type(output.value)), .hint = "output", .reads = {}};
    read(box, output.value, boxes.size());
    boxes.push_back(std::move(box));
  }
  return boxes;
}

}  // namespace superstep::show
