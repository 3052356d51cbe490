// Graphs made ready for tiles: operators whose parts would need all of an image are written as ones that can
// be cut.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::ipu {

// The passes that every target runs, after batch normalisation in training has become moments of channels
// (which tiles make in parts), the normalisation by them, and the update of the running ones. Inputs, states
// and outputs stay.
graph::Graph prepare_for_tiles(const graph::Graph& graph);

}  // namespace superstep::target::ipu
