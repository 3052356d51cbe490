// Which of a file's initialisers are trained, and constants that become states for it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "superstep/graph/graph.h"
#include "superstep/onnx/findings.h"
#include "superstep/onnx/import_options.h"

namespace superstep::onnx {

// What a file says itself of its initialisers, which our own files do: names, each on a line of the metadata.
inline constexpr const char *trained_key = "superstep.trained", *kept_key = "superstep.kept";
struct SaidOfInitializers {
  std::set<std::string, std::less<>> trained, kept;
};
SaidOfInitializers said_of_initializers(const std::map<std::string, std::string>& metadata);

// What becomes of each of the `initializers` (ids of floating constants, or of inputs that stand for
// constants that were not read) that a node of the graph reads: weights (onnx/roles.h) are trained where the
// file does not say what is, and what `choice.train` names; not what `choice.freeze` names. Names may have *
// and ? in them. Throws Error (invalid_argument) on a name that fits none of them.
std::vector<Initializer> choose_trained(const graph::Graph& graph,
                                        const std::set<graph::ValueId>& initializers,
                                        const SaidOfInitializers& said, const TrainChoice& choice);

// The graph with those that are trained, and the statistics, as states of the same name.
graph::Graph parameters_to_states(const graph::Graph& graph, const std::vector<Initializer>& initializers);

}  // namespace superstep::onnx
