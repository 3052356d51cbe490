// Graphs made ready for tiles: operators whose parts would need all of an image are written as ones that can
// be cut.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/transform/pass.h"

namespace superstep::target::ipu {

// The passes of this target, in order: some operators become others, then what every target runs. Batch
// normalisation in training becomes moments of channels (which tiles make in parts), the normalisation by
// them, and the update of the running ones; normalisation of groups and instances moments of groups and the
// normalisation by them; the place of a largest element its place with its value; recurrent cells whose
// weights a tile cannot have their steps; ONNX's optimisers of several tensors one a tensor; Fourier
// transforms along several axes one an axis. Inputs, states and outputs stay. None is required: without them
// fewer tiles share the work, and less fits.
std::vector<transform::Pass> graph_passes();

// The graph after all of them, but for those left out by name.
graph::Graph prepare_for_tiles(graph::Graph graph, std::span<const std::string> left_out = {});

}  // namespace superstep::target::ipu
