// Where the samples of a batch are in every value of a graph, and whether they stay apart.
//
// A target that runs a training step in micro-batches builds the same step for the micro-batch's size, runs
// it on each part of the batch and averages the gradients and the loss. That gives the step on the whole
// batch exactly when nothing in phases forward and backward mixes samples, but for means and sums over the
// batch that are only used linearly (the loss, the gradients of parameters). splittable() says whether it
// is so.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/graph/graph.h"
#include "superstep/op/core/batch_axis.h"

namespace superstep::transform {

using op::BatchAxis;
using op::BatchKind;

struct BatchAxisOptions {
  // Inputs, by name, that do not carry the batch. All others do along axis 0, except scalars.
  std::vector<std::string> shared_inputs;
  // As if a sum over the batch that is given back to the samples were averaged over all parts first, and
  // moments of channels were those of all parts (see over_parts.h).
  bool averages_sums = false;
};

// By value of the graph. Conservative: a node of an operator that the analysis does not know gives mixed
// values as soon as one of its inputs depends on samples.
std::vector<BatchAxis> find_batch_axes(const graph::Graph& graph, const BatchAxisOptions& options = {});

// Can the graph be run in micro-batches? The error (unsupported) names the first node that mixes samples and
// says how, or the first node of phase update that reads a value per sample.
Status splittable(const graph::Graph& graph, const BatchAxisOptions& options = {});

}  // namespace superstep::transform
