// What runs together: element-wise neighbours as one pass over memory, and a product with the element-wise
// operators that follow it as one kernel.
//
// A group has a root, the last node, whose output is all that leaves it: every other member is read by
// members alone. So a group can always run at its root's place, and can never close a cycle.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// The list of steps a node belongs to: see plan.h.
enum class Section : std::uint8_t { prepare, body, update };

struct FusionGroup {
  graph::NodeId root;
  std::vector<graph::NodeId> members;    // element-wise, in order, the root last
  std::optional<graph::NodeId> product;  // its output is read by members alone
};

struct Fusion {
  std::vector<FusionGroup> groups;
  std::vector<int> group_of;  // by node: its group, or -1
};

// `leaves[v]`: value v is read outside the section (an output, an update, another section), so it must be
// stored. Nodes of different sections are never
// grouped, those `excluded` not at all.
Fusion find_fusion(const graph::Graph& graph, const std::vector<bool>& leaves,
                   const std::vector<Section>& section_of, const std::vector<bool>& excluded);

bool is_elementwise(const graph::Graph& graph, const graph::Node& node);
bool is_fusable_product(const graph::Node& node);

}  // namespace superstep::target::cpu
