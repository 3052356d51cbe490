// Reference evaluation of whole graphs: the oracle every other target is checked against.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::op {

// Evaluates one node on tensors; null inputs are left out. Throws Error naming the node.
std::vector<Tensor> evaluate_node(const graph::Graph& graph, const graph::Node& node,
                                  std::span<const Tensor* const> inputs);

struct Evaluation {
  std::vector<Tensor> outputs;           // in the order of graph.outputs()
  std::map<std::string, Tensor> states;  // every state after the run, by name
};

// Runs a graph. `inputs` in the order of graph.inputs(); `states` by name, the graph's own initial values
// for those not given. Throws Error on a wrong type, naming the input.
Evaluation evaluate(const graph::Graph& graph, std::span<const Tensor> inputs,
                    const std::map<std::string, Tensor>& states = {});

}  // namespace superstep::op
