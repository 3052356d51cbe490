// A batch that runs in equal parts, in step: what a training step takes of the whole batch, each part takes
// of all parts together.
#pragma once

#include <cstdint>
#include <optional>

#include "superstep/graph/graph.h"

namespace superstep::transform {

// The graph of one of `parts` such parts, built for the samples of one: superstep.PartsMean
// (op/rows/parts_mean.h)
//   - makes moments of channels (superstep.ChannelMoments) those of all parts,
//   - stands between the sums of superstep.ChannelSums and the samples that they are given back to,
//   - makes sums that say so (is_sum_over_parts) those of all parts.
// Gradients of parameters, and outputs that are means over samples, are averaged over parts afterwards, as
// those of micro-batches that know nothing of each other are: so cotangents of every part are `parts` times
// those of the whole, which a mean over a part's own samples brings about by itself. None where something
// else mixes samples, or where nothing does.
std::optional<graph::Graph> over_parts(const graph::Graph& graph, std::int64_t parts);

// A sum over all samples that is marked to be taken of the whole batch: attribute `over_parts`. Whoever marks
// it sees to it that nothing that is made of it depends on the number of samples in another way.
bool is_sum_over_parts(const graph::Node& node);

}  // namespace superstep::transform
