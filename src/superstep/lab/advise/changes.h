// Changes of a model that a machine would thank for: each is made on the model's graph, and predicted again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "superstep/lab/advise/search.h"
#include "superstep/run/model.h"

namespace superstep::lab {

struct Change {
  std::string what;  // "depthwise convolutions in groups of 16"
  double gain = 1;   // of the goal's figure; more than one is better
  std::string note;  // what it costs: "9,408 more parameters"
};

// Changes that gain at least a tenth in the best option's settings: of the model (depthwise convolutions in
// wider groups), and of how it is fed (samples as bytes, where the link binds). A larger micro-batch or other
// precision was among the options.
std::vector<Change> changes_of(const machine::Machine& machine, const run::Model& model, bool trains,
                               const Option& best, const SearchSettings& settings);

// The graph with every convolution of one channel a group taken in groups of `size` where its channels
// divide; what is left is as it was. `added`: how many more elements its weights have.
graph::Graph with_wider_groups(const graph::Graph& graph, std::int64_t size, std::int64_t* added);

}  // namespace superstep::lab
