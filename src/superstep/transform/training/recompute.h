// Less memory for more arithmetic: values of the forward pass that the backward pass computes again instead
// of keeping them (T. Chen et al., "Training deep nets with sublinear memory cost", arXiv:1604.06174; here
// values are chosen one by one, by the bytes they free for each operation they cost).
#pragma once

#include <cstddef>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::transform {

struct RecomputeOptions {
  // Operations that may be done again, as a share of all operations of the graph.
  double extra_share = 0.05;
  // Values that stay as they are, with all that is read of them: parts of what a target runs as one step.
  std::vector<graph::ValueId> keep = {};
  // Into how many stretches of equal bytes the forward pass is divided. What one stretch hands to the next is
  // kept, so that no value is computed again from further back, and waits no longer, than its own stretch.
  int stretches = 1;
};

struct Recomputed {
  graph::Graph graph;
  std::size_t values = 0;  // of the forward pass that are no longer kept
  double bytes_freed = 0;  // of them: what the backward pass no longer waits for
  double extra_flops = 0;  // operations done again
};

// A training step with the same results, bit for bit where the operators are deterministic. The nodes that
// compute again belong to phase backward and stand directly before their first reader. Nodes with effects,
// random masks and nodes with several outputs are never run again. A graph without a backward phase comes
// back as it is. Run no pass that merges equal nodes afterwards: it would undo this one.
Recomputed recompute(const graph::Graph& graph, const RecomputeOptions& options = {});

}  // namespace superstep::transform
