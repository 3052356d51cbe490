// Random graphs, well formed but without meaning: every element type, odd names, nested graphs.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/graph/graph.h"

namespace superstep::graph {

class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : random_(seed) {}

  Graph make(int depth = 0) {
    Graph graph(text());
    if (chance(0.3)) graph.set_doc(text() + "\n" + text());
    for (int i = 0; i < 3 + below(12); ++i) add_something(graph, depth);
    for (int i = 0; i < below(3); ++i)
      if (graph.value_count() > 0) graph.add_output(text(), some_value(graph));
    for (ValueId state : graph.states())
      if (chance(0.5)) graph.set_update(state, some_value(graph));
    return graph;
  }

  // Bits of any kind: the floats among them are NaNs with payloads, infinities and subnormals too.
  Tensor tensor() {
    Tensor result(element(), shape());
    for (std::size_t i = 0; i < result.byte_count(); ++i)
      result.bytes()[i] = result.type() == ElementType::boolean ? std::byte(below(2)) : odd_byte();
    return result;
  }

 private:
  int below(int bound) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound))); }
  bool chance(double probability) { return random_.uniform() < probability; }
  std::byte odd_byte() {
    static constexpr int odd[] = {0x00, 0x7f, 0xff, 0x80, 0xf8, 0x7c, 0x01};
    return std::byte(chance(0.5) ? odd[below(7)] : below(256));
  }
  ElementType element() { return all_element_types[below(13)]; }
  Shape shape() {
    std::vector<std::int64_t> extents;
    for (int i = 0; i < below(4); ++i) extents.push_back(below(5));
    return Shape(extents);
  }
  std::string text() {
    static constexpr const char* parts[] = {"conv1",    "a b", "\"",    "\\",   "\n", "_", "",  "%x",
                                            "\xc3\xa9", "v3",  "x/y:0", "\x01", "//", "'", "}", "."};
    return std::string(parts[below(16)]) + (chance(0.5) ? parts[below(16)] : "");
  }

  ValueId some_value(const Graph& graph) {
    for (;;) {
      const ValueId id(random_.below(graph.value_count()));
      const Value& value = graph.value(id);
      if (value.kind != ValueKind::computed) return id;
      const auto& outputs = graph.node(value.producer).outputs;
      if (std::ranges::find(outputs, id) != outputs.end()) return id;
      if (++tries_ > 50) return graph.inputs().empty() ? graph.states()[0] : graph.inputs()[0];
    }
  }

  void add_something(Graph& graph, int depth) {
    const int kind = graph.inputs().empty() ? 0 : below(6);
    if (kind == 0)
      graph.add_input(text(), {element(), shape()});
    else if (kind == 1)
      graph.add_constant(text(), tensor());
    else if (kind == 2)
      graph.add_state(text(), tensor());
    else
      add_node(graph, depth);
  }

  void add_node(Graph& graph, int depth) {
    std::vector<ValueId> inputs;
    for (int i = 0; i < below(4); ++i) inputs.push_back(chance(0.2) ? ValueId() : some_value(graph));
    std::vector<ValueType> types;
    std::vector<std::string> names;
    for (int i = 0; i < 1 + below(3); ++i) {
      types.push_back({element(), shape()});
      names.push_back(text());
    }
    const std::string op = chance(0.8) ? "superstep.Op" : "odd " + text();
    const NodeId node =
        graph.add_node(op, inputs, types, attributes(depth), text(), static_cast<Phase>(below(3)), names);
    for (int i = static_cast<int>(types.size()) - 1; i >= 0; --i)
      if (chance(0.15)) graph.drop_output(node, i);
  }

  Attributes attributes(int depth) {
    Attributes result;
    for (int i = 0; i < below(4); ++i) result.set(text(), attribute(depth));
    return result;
  }

  double number() { return chance(0.2) ? std::bit_cast<double>(random_.next_u64()) : random_.normal(); }

  Attribute attribute(int depth) {
    const auto length = static_cast<std::size_t>(below(4));
    switch (below(depth < 2 ? 8 : 7)) {
      case 0: return static_cast<std::int64_t>(random_.next_u64());
      case 1: return number();
      case 2: return text();
      case 3: return std::vector<std::int64_t>(length, -7);
      case 4: return std::vector<double>(length, number());
      case 5: return std::vector<std::string>(length, text());
      case 6: return tensor();
      default: return std::make_shared<const Graph>(make(depth + 1));
    }
  }

  RandomStream random_;
  int tries_ = 0;
};

}  // namespace superstep::graph
