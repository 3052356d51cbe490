#include "superstep/machine/borders.h"

#include <algorithm>
#include <optional>

namespace superstep::machine {
namespace {

using graph::Graph;
using graph::Node;
using graph::Phase;
using graph::ValueId;

// Where a value is made, and the stages that read it: of what a view makes, what the view reads.
struct Travel {
  std::optional<std::size_t> made;
  std::size_t lowest = 0, highest = 0;
};

class Borders {
 public:
  Borders(const Graph& graph, std::span<const Work> works)
      : graph_(graph), stage_(graph.node_count()), travels_(graph.value_count()) {
    for (const Work& work : works)
      for (const graph::NodeId node : work.nodes) stage_[node.index()] = work.stage;
    for (std::size_t i = 0; i < graph.value_count(); ++i) source_.push_back(ValueId(i));
    follow();
  }

  std::vector<Border> sums(const Precision& precision, std::size_t stages) const {
    std::vector<Border> borders(stages - 1);
    for (std::size_t i = 0; i < travels_.size(); ++i) {
      const Travel& travel = travels_[i];
      if (!travel.made) continue;
      const double bytes = precision.bytes(graph_.value(ValueId(i)));
      // Where the last stage lies beside the first, activations pass downwards and gradients upwards, too.
      for (std::size_t s = *travel.made; s < travel.highest; ++s) borders[s].up += bytes;
      for (std::size_t s = travel.lowest; s < *travel.made; ++s) borders[s].down += bytes;
    }
    return borders;
  }

 private:
  void follow() {
    std::size_t number = 0;
    for (const Node& node : graph_.nodes()) {
      const std::optional<std::size_t> stage = stage_[number++];
      if (!stage) {  // a view
        if (!node.inputs.empty() && node.inputs[0].valid())
          for (const ValueId output : node.outputs)
            if (output.valid()) source_[output.index()] = source_[node.inputs[0].index()];
        continue;
      }
      if (node.phase != Phase::update) read(node, *stage);
      for (const ValueId output : node.outputs)
        if (output.valid()) travels_[output.index()] = {.made = stage, .lowest = *stage, .highest = *stage};
    }
  }

  void read(const Node& node, std::size_t stage) {
    for (const ValueId input : node.inputs) {
      if (!input.valid()) continue;
      Travel& travel = travels_[source_[input.index()].index()];
      if (!travel.made) continue;
      travel.lowest = std::min(travel.lowest, stage);
      travel.highest = std::max(travel.highest, stage);
    }
  }

  const Graph& graph_;
  std::vector<std::optional<std::size_t>> stage_;  // by node; none: a view
  std::vector<Travel> travels_;                    // by value
  std::vector<ValueId> source_;                    // by value: what it is a view of
};

}  // namespace

std::vector<Border> borders_of(const Graph& graph, std::span<const Work> works, const Precision& precision,
                               std::size_t stages) {
  if (stages < 2) return {};
  return Borders(graph, works).sums(precision, stages);
}

}  // namespace superstep::machine
