// A model as it is served, of a file that was exported for training.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::onnx {

// The graph with normalisations that take their running statistics and dropouts that drop nothing, whatever
// the file says: training brings both back (transform/training/training_form.h). Nodes whose other outputs
// (the mask, the new statistics) are read stay as they are.
graph::Graph serving_form(const graph::Graph& graph);

}  // namespace superstep::onnx
