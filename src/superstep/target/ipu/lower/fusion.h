// Which nodes of a graph become one vertex: element-wise ones of a layer that follow one another, as
// predictions take them together (machine/work.h).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/target/ipu/cut/fused.h"

namespace superstep::target::ipu {

// As a node: its operands come from elsewhere, its outputs are what others read; operator and attributes are
// those of the last.
struct FusedNode {
  graph::Node node;
  std::shared_ptr<const Fused> fused;
  std::string operators;  // "Mul + Add"
};

class Fusion {
 public:
  // `stages`: of each node, where they are several; nodes of two stages do not become one.
  explicit Fusion(const graph::Graph& graph, std::span<const std::size_t> stages = {});
  // Whether the node is lowered with a later one.
  bool is_inside(std::size_t node) const { return inside_[node]; }
  // What is lowered in the place of this node; null: itself.
  const FusedNode* at(std::size_t node) const;

 private:
  std::vector<bool> inside_;
  std::map<std::size_t, FusedNode> fused_;  // by the last of its nodes
};

}  // namespace superstep::target::ipu
