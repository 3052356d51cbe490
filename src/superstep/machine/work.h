// What the operators of a graph ask of a machine: kernels of one kind each, with their arithmetic and the
// bytes at their borders. Element-wise operators that follow each other are one kernel; views are none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/machine/precision.h"
#include "superstep/op/core/traits.h"

namespace superstep::machine {

using op::WorkKind;
const char* name_of(WorkKind kind);
WorkKind kind_of(std::string_view op);  // unsupported for what is no operator

struct Work {
  WorkKind kind = WorkKind::elementwise;
  std::string name, op;  // of its first node
  graph::Phase phase = graph::Phase::forward;
  std::vector<graph::NodeId> nodes;  // more than one: element-wise nodes in one kernel
  double flops = 0;
  double read_bytes = 0, write_bytes = 0;  // at the borders
  double weight_bytes = 0;                 // of what it reads, parameters
  double elements = 0;                     // of its largest output
  std::size_t stage = 0;                   // of a pipeline
};

struct WorkOptions {
  // Element-wise nodes join across layers; otherwise only nodes of one name, as a framework's own kernel of
  // one operator has them.
  bool fuse_across_layers = true;
};

// The kernels, in an order in which they can run.
std::vector<Work> works_of(const graph::Graph& graph, const Precision& precision,
                           const WorkOptions& options = {});

// Operators without a cost, each once.
std::vector<std::string> unsupported_operators(std::span<const Work> works);

// Cuts the graph into consecutive stages of a pipeline: `shares` are relative numbers of layers with
// parameters. Backward nodes go where their forward node is, updates where the parameter is used.
void assign_stages(const graph::Graph& graph, std::vector<Work>& works, std::span<const int> shares);

}  // namespace superstep::machine
