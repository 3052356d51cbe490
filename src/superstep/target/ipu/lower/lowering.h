// A graph as a bulk-synchronous program: every value a tensor with a place, every operator a compute set.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "superstep/bsp/graph/graph.h"
#include "superstep/machine/ipu/hardware.h"
#include "superstep/target/target.h"

namespace superstep::target::ipu {

struct LoweredStep {
  PlanStep plan;
  std::string compute_set;  // its name in the profile; empty for a view
  // Further ones: parts in turn (then compute_set itself is not there), the combination of partial results.
  std::vector<std::string> more_compute_sets;
};

// A stream of the program and the graph's input or output, by its number, that passes over it.
struct HostStream {
  std::string handle;
  std::size_t port = 0;
};

struct LoweredGraph {
  bsp::Graph graph;
  bsp::Sequence program = bsp::Sequence();  // inputs in, operators, outputs out, states updated
  std::vector<LoweredStep> steps;
  std::vector<HostStream> inputs, outputs;                              // every transfer is one micro-batch
  std::map<std::string, std::vector<std::string>, std::less<>> states;  // handles, by the state's name
};

struct LowerOptions {
  bool data = true;  // initial values of states; without, the program can be timed but not run
  double seconds =
      1e300;  // of processor time for the nodes, before it is given up with an error (unsupported)
  std::function<void(std::size_t done, std::size_t all)> progress = {};  // nodes
};

// Counts the nodes that are lowered, tells of progress and gives up.
class LoweringBudget {
 public:
  LoweringBudget(const graph::Graph& graph, const LowerOptions& options);
  void lowered(std::size_t nodes) const;

 private:
  const graph::Graph& graph_;
  const LowerOptions& options_;
  double start_;
};

// Streams are called "in:NAME" and "out:NAME"; states have host handles of their names. Throws Error
// (unsupported) naming a node whose operator or type the machine cannot run.
LoweredGraph lower(const graph::Graph& graph, const bsp::Device& device,
                   const machine::ipu::Hardware& hardware, const LowerOptions& options = {});

}  // namespace superstep::target::ipu
