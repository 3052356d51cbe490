#include "superstep/transform/precision/byte_moves.h"

#include <algorithm>
#include <numeric>

#include "superstep/op/core/definition.h"
#include "superstep/transform/precision/byte_sums.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

// Does every element of its first result come from the data that it reads as it is?
bool moves(const Graph& graph, const Node& node) {
  return op::traits_of(node.op).moves_bytes && graph.type(node.outputs[0]).element == ElementType::f32;
}

// The inputs that are data: all parts of a Concat, the first input of the others.
std::size_t data_inputs(const Node& node) { return node.op == "Concat" ? node.inputs.size() : 1; }

}  // namespace

ByteMoves::ByteMoves(const Graph& graph, FunctionRef<bool(const Node&)> takes, const std::set<ValueId>& apart)
    : graph_(graph),
      moved_(graph.node_count(), false),
      terms_(graph.node_count()),
      bytes_alone_(graph.value_count(), false),
      parents_(graph.value_count()) {
  const ByteSums sums(graph, takes);
  std::iota(parents_.begin(), parents_.end(), std::size_t{0});
  std::vector<bool> read(graph.value_count(), false), refused(graph.value_count(), false);
  for (const graph::Output& output : graph.outputs()) refused[output.value.index()] = true;
  for (const graph::Update& update : graph.updates()) refused[update.next.index()] = true;
  // Readers come behind what they read: all of a value's have been seen when its producer is.
  for (std::size_t i = graph.node_count(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    for (ValueId output : node.outputs)
      if (output.valid()) bytes_alone_[output.index()] = read[output.index()] && !refused[output.index()];
    const bool others_read = std::ranges::any_of(
        node.outputs.begin() + 1, node.outputs.end(),
        [&](ValueId id) { return id.valid() && (read[id.index()] || refused[id.index()]); });
    const bool moved = !others_read && moves(graph, node) && bytes_alone_[node.outputs[0].index()] &&
                       !apart.contains(node.outputs[0]);
    moved_[i] = moved;
    const std::size_t bytes = moved ? data_inputs(node) : takes(node) ? 1 : 0;
    if (const auto term = sums.term(i); term && !apart.contains(node.inputs[*term])) terms_[i] = term;
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k].valid())
        (k < bytes || terms_[i] == k ? read : refused)[node.inputs[k].index()] = true;
    for (std::size_t k = 0; moved && k < bytes; ++k)
      parents_[family(node.inputs[k].index())] = family(node.outputs[0].index());
  }
}

ByteMoves ByteMoves::within_ranges(const Graph& graph, FunctionRef<bool(const Node&)> takes,
                                   const RangeTable& ranges) {
  constexpr double most = 2;
  std::set<ValueId> apart;
  const ByteSums sums(graph, takes);
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    if (const auto term = sums.term(i);
        term && !ranges.contains(graph.value(graph.nodes()[i].inputs[*term]).name))
      apart.insert(graph.nodes()[i].inputs[*term]);
  while (true) {
    ByteMoves moves(graph, takes, apart);
    const RangeTable widened = moves.widened(ranges);
    const std::size_t before = apart.size();
    for (std::size_t i = 0; i < graph.value_count(); ++i) {
      const auto own = ranges.find(graph.values()[i].name);
      if (own == ranges.end() || !moves.moved_by(ValueId(i))) continue;
      const ValueRange& wide = widened.find(own->first)->second;
      if (wide.high - wide.low > most * (own->second.high - own->second.low)) apart.insert(ValueId(i));
    }
    if (apart.size() == before) return moves;
  }
}

std::size_t ByteMoves::family(std::size_t value) const {
  while (parents_[value] != value) value = parents_[value];
  return value;
}

std::optional<NodeId> ByteMoves::moved_by(ValueId value) const {
  const graph::Value& moved = graph_.value(value);
  if (moved.kind != graph::ValueKind::computed || !moved_[moved.producer.index()]) return std::nullopt;
  return moved.producer;
}

std::optional<std::size_t> ByteMoves::term_in_bytes(NodeId node) const {
  const auto term = terms_[node.index()];
  if (!term || !in_bytes_alone(graph_.node(node).inputs[*term])) return std::nullopt;
  return term;
}

RangeTable ByteMoves::widened(const RangeTable& table) const {
  std::map<std::size_t, ValueRange> families;
  const auto each = [&](const auto& visit) {
    for (std::size_t i = 0; i < graph_.value_count(); ++i)
      if (const auto found = table.find(graph_.values()[i].name); found != table.end())
        visit(family(i), *found);
  };
  each([&](std::size_t of, const auto& entry) {
    const auto [place, fresh] = families.emplace(of, entry.second);
    if (fresh) return;
    place->second.low = std::min(place->second.low, entry.second.low);
    place->second.high = std::max(place->second.high, entry.second.high);
  });
  RangeTable result = table;
  each([&](std::size_t of, const auto& entry) { result[entry.first] = families.at(of); });
  return result;
}

}  // namespace superstep::transform
