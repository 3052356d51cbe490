#include "superstep/target/cpu/passes/postpone.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "superstep/transform/batch_axis.h"
#include "superstep/transform/border.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::Phase;
using graph::ValueId;
using transform::BatchKind;

// Of what went over the border before, at most this share may go over it then.
constexpr std::int64_t smaller_border = 2;

class Postponer {
 public:
  explicit Postponer(const Graph& graph)
      : graph_(graph),
        axes_(transform::find_batch_axes(graph)),
        crosses_(transform::gradient_values(graph)),
        late_(graph.node_count(), false),
        part_(graph.node_count()) {}

  // By node: moves to the update.
  const std::vector<bool>& run() {
    find_late();
    join_parts();
    keep_large_borders();
    return late_;
  }

 private:
  BatchKind kind(ValueId id) const { return axes_[id.index()].kind; }

  bool is_linear_in_sums(const Node& node) const {
    if (node.phase != Phase::backward) return false;
    bool any = false;
    for (ValueId input : node.inputs) {
      if (!input.valid()) continue;
      if (kind(input) != BatchKind::constant && kind(input) != BatchKind::reduced) return false;
      any = any || kind(input) == BatchKind::reduced;
    }
    return any && std::ranges::all_of(node.outputs, [&](ValueId output) {
             return !output.valid() || kind(output) == BatchKind::reduced;
           });
  }

  // Those that nothing in the backward pass waits for.
  void find_late() {
    std::vector<bool> wanted_early(graph_.value_count(), false);
    for (const graph::Output& output : graph_.outputs()) wanted_early[output.value.index()] = true;
    for (std::size_t i = graph_.node_count(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      late_[i] = is_linear_in_sums(node) && std::ranges::none_of(node.outputs, [&](ValueId output) {
                   return output.valid() && wanted_early[output.index()];
                 });
      if (late_[i] || node.phase == Phase::update) continue;
      for (ValueId input : node.inputs)
        if (input.valid()) wanted_early[input.index()] = true;
    }
  }

  bool is_late(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    return value.kind == graph::ValueKind::computed && late_[value.producer.index()];
  }

  // Nodes that read the same sums, or each other's results, move together or not at all.
  void join_parts() {
    std::iota(part_.begin(), part_.end(), std::size_t{0});
    std::vector<std::size_t> first_reader(graph_.value_count(), graph_.node_count());
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      if (!late_[i]) continue;
      for (ValueId input : graph_.nodes()[i].inputs) {
        if (!input.valid() || kind(input) != BatchKind::reduced) continue;
        std::size_t& reader = first_reader[input.index()];
        if (is_late(input)) join(i, graph_.value(input).producer.index());
        if (reader == graph_.node_count()) reader = i;
        join(i, reader);
      }
    }
  }
  std::size_t root(std::size_t node) const {
    while (part_[node] != node) node = part_[node];
    return node;
  }
  void join(std::size_t a, std::size_t b) { part_[root(a)] = root(b); }

  void keep_large_borders() {
    std::vector<std::int64_t> before(graph_.node_count(), 0), after(graph_.node_count(), 0);
    std::set<ValueId> counted;
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      if (!late_[i]) continue;
      for (ValueId output : graph_.nodes()[i].outputs)
        if (output.valid() && crosses_[output.index()]) before[root(i)] += elements(output);
      for (ValueId input : graph_.nodes()[i].inputs)
        if (input.valid() && kind(input) == BatchKind::reduced && !is_late(input) &&
            !crosses_[input.index()] && counted.insert(input).second)
          after[root(i)] += elements(input);
    }
    std::vector<bool> stays(graph_.node_count(), false);
    for (std::size_t i = 0; i < graph_.node_count(); ++i)
      stays[i] = late_[i] && smaller_border * after[root(i)] > before[root(i)];
    for (std::size_t i = 0; i < graph_.node_count(); ++i)
      if (stays[i]) late_[i] = false;
  }
  std::int64_t elements(ValueId id) const { return graph_.type(id).shape.element_count(); }

  const Graph& graph_;
  std::vector<transform::BatchAxis> axes_;
  std::vector<bool> crosses_;  // by value: goes over the border as the graph is
  std::vector<bool> late_;
  std::vector<std::size_t> part_;  // by node: another one of its part, or itself
};

}  // namespace

Graph postpone_linear(const Graph& graph) {
  if (graph.updates().empty()) return graph;
  Postponer postponer(graph);
  const std::vector<bool>& late = postponer.run();
  if (std::ranges::find(late, true) == late.end()) return graph;
  std::size_t index = 0;
  return transform::rewrite(graph, [&](transform::Rewrite& rewrite, const Node& node) {
    if (!late[index++]) return rewrite.keep(node);
    rewrite.builder().set_phase(Phase::update);
    const std::vector<op::Var> outputs = rewrite.builder().node(
        node.op, rewrite.now(node.inputs), node.attributes, static_cast<int>(node.outputs.size()));
    rewrite.replace(node, outputs);
  });
}

}  // namespace superstep::target::cpu
