// Graphs made ready for tiles: operators whose parts would need all of an image are written as ones that can
// be cut.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::ipu {

// The passes that every target runs, after some operators have become others: batch normalisation in training
// moments of channels (which tiles make in parts), the normalisation by them, and the update of the running
// ones; normalisation of groups and instances moments of groups and the normalisation by them; recurrent
// cells whose weights a tile cannot have their steps; ONNX's optimisers of several tensors one a tensor.
// Inputs, states and outputs stay.
graph::Graph prepare_for_tiles(const graph::Graph& graph);

}  // namespace superstep::target::ipu
