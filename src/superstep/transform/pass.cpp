#include "superstep/transform/pass.h"

#include <algorithm>
#include <cstring>

namespace superstep::transform {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;
using graph::ValueId;
using graph::ValueKind;

bool same_data(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() || std::memcmp(a.bytes(), b.bytes(), a.byte_count()) == 0;
}

// Walks two graphs side by side, and notes which value of one stands for which of the other.
class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b) : a_(a), b_(b), counterpart_(a.value_count()) {}

  bool run() {
    if (a_.name() != b_.name() || a_.doc() != b_.doc() || a_.node_count() != b_.node_count() ||
        a_.value_count() != b_.value_count() || a_.outputs().size() != b_.outputs().size() ||
        a_.updates().size() != b_.updates().size())
      return false;
    return same_ports(a_.inputs(), b_.inputs()) && same_ports(a_.states(), b_.states()) && same_nodes() &&
           same_ends();
  }

 private:
  bool same_ports(std::span<const ValueId> a, std::span<const ValueId> b) {
    return std::ranges::equal(a, b, [&](ValueId left, ValueId right) {
      const Value &one = a_.value(left), &other = b_.value(right);
      if (one.name != other.name || one.type != other.type) return false;
      counterpart_[left.index()] = right;
      return true;
    });
  }

  // Constants are met where they are read.
  bool same_value(ValueId left, ValueId right) {
    if (!left.valid() || !right.valid()) return left.valid() == right.valid();
    if (counterpart_[left.index()].valid()) return counterpart_[left.index()] == right;
    const Value &one = a_.value(left), &other = b_.value(right);
    if (one.kind != ValueKind::constant || other.kind != ValueKind::constant || one.type != other.type ||
        !same_data(one.data, other.data))
      return false;
    counterpart_[left.index()] = right;
    return true;
  }

  bool same_node(const Node& one, const Node& other) {
    if (one.op != other.op || one.name != other.name || one.phase != other.phase ||
        !(one.attributes == other.attributes))
      return false;
    const auto read = [&](ValueId left, ValueId right) { return same_value(left, right); };
    const auto made = [&](ValueId left, ValueId right) {
      if (!left.valid() || !right.valid()) return left.valid() == right.valid();
      counterpart_[left.index()] = right;
      return a_.type(left) == b_.type(right);
    };
    return std::ranges::equal(one.inputs, other.inputs, read) &&
           std::ranges::equal(one.outputs, other.outputs, made);
  }

  bool same_nodes() {
    return std::ranges::equal(a_.nodes(), b_.nodes(),
                              [&](const Node& one, const Node& other) { return same_node(one, other); });
  }

  bool same_ends() {
    return std::ranges::equal(a_.outputs(), b_.outputs(),
                              [&](const graph::Output& one, const graph::Output& other) {
                                return one.name == other.name && same_value(one.value, other.value);
                              }) &&
           std::ranges::equal(a_.updates(), b_.updates(),
                              [&](const graph::Update& one, const graph::Update& other) {
                                return same_value(one.state, other.state) && same_value(one.next, other.next);
                              });
  }

  const Graph &a_, &b_;
  std::vector<ValueId> counterpart_;  // by value of the first graph
};

}  // namespace

bool same_structure(const Graph& a, const Graph& b) { return Comparison(a, b).run(); }

std::function<bool(Graph&)> rebuild(std::function<Graph(const Graph&)> make) {
  return [make = std::move(make)](Graph& graph) {
    Graph made = make(graph);
    if (same_structure(graph, made)) return false;
    graph = std::move(made);
    return true;
  };
}

}  // namespace superstep::transform
