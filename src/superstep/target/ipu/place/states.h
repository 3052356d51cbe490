// A graph's states on the machine: variables that the host may write and read, and their new values.
#pragma once

#include <string>
#include <vector>

#include "superstep/target/ipu/place/values.h"

namespace superstep::target::ipu {

// A variable with the state's initial value that waits for its place; host handles are the state's name with
// `suffix` behind it. Without `data` it begins with zeros.
void add_state(const graph::Graph& graph, graph::ValueId id, bsp::Graph& device, Values& values,
               const std::string& suffix = {}, bool data = true);

// Copies of what the graph's states become; all are taken before any state changes. All nodes are lowered:
// what still waits for a place gets one. What was written in its state's place needs no copy.
void add_updates(const graph::Graph& graph, bsp::Graph& device, Values& values, bsp::Sequence& program);

// The same of states that are listed with their new values.
struct NextState {
  std::string name;
  bsp::Tensor next, state;
};
void add_new_states(bsp::Graph& device, std::vector<NextState> list, bsp::Sequence& program);

}  // namespace superstep::target::ipu
