// Which nodes can run as one kernel: a product or convolution with the element-wise nodes that follow it,
// and chains and trees of element-wise nodes. The graph itself keeps its ONNX operators; a target reads the
// groups and gives each one kernel.
//
// A group computes an optional anchor (Conv, ConvTranspose, Gemm, MatMul) and then its element-wise nodes,
// in order, each over the same iteration shape: the shape of all their outputs and of the anchor's. Values
// from outside may be smaller and broadcast. What is read outside the group is written out, once; what is
// not never exists in memory.
//
// What may join a group:
//   - an element-wise node that reads one of its values, without broadcasting that value;
//   - of the same phase, so that no group straddles the border between backward and update;
//   - when no path leads from the group through an outside node back into it: then all groups together can
//     run one after the other, each whole;
//   - one anchor at most, and the anchor reads nothing that the group itself computes.
// A value with readers inside and outside does not stop fusion: it becomes an output of the group besides
// the last one. A target whose kernels have only one output asks for `single_output`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::transform {

struct FusionGroup {
  graph::NodeId anchor;                    // a product, a convolution, or any node on its own; invalid: none
  std::vector<graph::NodeId> elementwise;  // in the order they run, after the anchor
  std::vector<graph::ValueId> inputs;      // read from outside, each once, in order of first use
  std::vector<graph::ValueId> outputs;     // read outside: by other groups, as graph outputs, as updates
  Shape shape;                             // the iteration shape; of a node on its own, its first output's
  graph::Phase phase = graph::Phase::forward;
};

struct FusionGroups {
  std::vector<FusionGroup> groups;    // in an order in which they can run; every node is in exactly one
  std::vector<std::size_t> group_of;  // by node index
};

struct FusionOptions {
  bool single_output = false;           // fuse only while a group has one output
  std::size_t most_nodes = 64;          // of a group, the anchor counted
  std::vector<std::string> never_fuse;  // operators left on their own (a target without a kernel for them)
};

FusionGroups fuse_elementwise(const graph::Graph& graph, const FusionOptions& options = {});

// The traits `elementwise` and `product` of its definition (op/core/traits.h).
bool is_elementwise(std::string_view op);
bool is_fusion_anchor(std::string_view op);

// One line a group with more than one node, for people: "Conv 'conv1' + Add + LeakyRelu -> 2 outputs".
std::string to_string(const graph::Graph& graph, const FusionGroups& groups);

}  // namespace superstep::transform
