// What losses average: a number of each element, of each label, or of each sample.
#pragma once

#include "superstep/transform/training/loss.h"

namespace superstep::transform {

// Of losses that compare an output with a target of its own shape, but those of whole batches; of the shape
// of mask_type(). `variance`: of gaussian_nll.
op::Var loss_values(const LossTerm& term, op::Var output, op::Var target, op::Var variance);

// Of triplet_margin: a number of each anchor, of the outputs' shape without its last axis. Throws Error
// (bad_graph) where the three are not of one type.
op::Var triplet_values(const LossTerm& term, op::Var anchor, op::Var positive, op::Var negative);

// Of losses over labels [N, ...]: minus the logarithm of the label's class, smoothed and weighted, and what
// each label counts in the denominator; invalid where all count one.
struct LabelValues {
  op::Var values, counts;
};
LabelValues label_values(const LossTerm& term, op::Var log_probabilities, op::Var labels);

}  // namespace superstep::transform
