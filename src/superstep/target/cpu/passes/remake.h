// Element-wise values of normalised images that each reader makes again for itself, rather than reading what
// one of them wrote: what stands between a batch normalisation and its readers (scale, shift, activation, and
// their derivatives) costs a few operations an element, while each pass over memory costs the time of dozens.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// The training step with copies of such chains in front of their readers, where that reads and writes less
// memory and keeps nothing for the backward pass that is not kept anyway; same results. A value that a
// convolution reads is always written. Run no pass that merges equal nodes afterwards: it would undo this
// one.
graph::Graph remake_between_passes(const graph::Graph& graph);

// Whether the node sums its first input over the positions of an image, keeping samples and channels (by axes
// that are constant), so that what makes that input may run with it.
bool sums_over_positions(const graph::Graph& graph, const graph::Node& node);

}  // namespace superstep::target::cpu
