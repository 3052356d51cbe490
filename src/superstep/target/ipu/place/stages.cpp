// Which stage of a pipeline, and so which chip, each node of a graph belongs to.
#include <algorithm>
#include <optional>

#include "superstep/machine/work.h"
#include "superstep/target/ipu/chips/chips.h"

namespace superstep::target::ipu {
namespace {

using graph::Phase;
using graph::ValueId;

// The stages that the machine model gives to kernels; views are no kernels and have none.
std::vector<std::optional<std::size_t>> wished_stages(const graph::Graph& graph,
                                                      std::span<const int> shares) {
  std::vector<machine::Work> works =
      machine::works_of(graph, machine::precision_from_name("f32"), {.fuse_across_layers = false});
  machine::assign_stages(graph, works, shares);
  std::vector<std::optional<std::size_t>> stages(graph.node_count());
  for (const machine::Work& work : works)
    for (const graph::NodeId node : work.nodes) stages[node.index()] = work.stage;
  return stages;
}

// Nodes wait for what they read: a forward node is in no earlier stage than its operands, a backward node in
// no later one than the gradients that it reads.
class Ordered {
 public:
  Ordered(const graph::Graph& graph, std::vector<std::optional<std::size_t>> wished, std::size_t last)
      : graph_(graph), wished_(std::move(wished)), last_(last), made_(graph.value_count()) {}

  std::vector<std::size_t> run() {
    std::vector<std::size_t> stages;
    for (const graph::Node& node : graph_.nodes()) {
      stages.push_back(stage_of(node, wished_[stages.size()]));
      for (const ValueId output : node.outputs)
        if (output.valid()) made_[output.index()] = {stages.back(), node.phase};
    }
    return stages;
  }

 private:
  struct Made {
    std::size_t stage = 0;
    std::optional<Phase> phase;  // none: an input, a state or a constant
  };

  std::size_t stage_of(const graph::Node& node, std::optional<std::size_t> wished) const {
    std::optional<std::size_t> first, latest, any;  // of gradients, of values of the forward pass, of all
    for (const ValueId input : node.inputs) {
      if (!input.valid()) continue;
      const Made& made = made_[input.index()];
      if (!made.phase) continue;
      if (!any) any = made.stage;
      if (made.phase == Phase::backward) first = std::min(first.value_or(last_), made.stage);
      if (made.phase == Phase::forward) latest = std::max(latest.value_or(0), made.stage);
    }
    switch (node.phase) {
      case Phase::forward: return std::max(wished.value_or(0), latest.value_or(0));
      case Phase::backward:
        return std::min(wished.value_or(first ? last_ : latest.value_or(last_)), first.value_or(last_));
      case Phase::update: return wished.value_or(any.value_or(last_));
    }
    return 0;
  }

  const graph::Graph& graph_;
  const std::vector<std::optional<std::size_t>> wished_;
  const std::size_t last_;
  std::vector<Made> made_;  // by value
};

}  // namespace

std::uint32_t ChipLayout::chips() const {
  auto chips = static_cast<std::uint32_t>(shares.size());
  while (chips * static_cast<std::uint32_t>(replicas) > 1 && chips * static_cast<std::uint32_t>(replicas) % 2)
    ++chips;
  return chips;
}

std::vector<std::size_t> stages_of(const graph::Graph& graph, std::span<const int> shares) {
  if (shares.size() < 2) return std::vector<std::size_t>(graph.node_count(), 0);
  return Ordered(graph, wished_stages(graph, shares), shares.size() - 1).run();
}

}  // namespace superstep::target::ipu
