// One evaluation of a loss and its gradient, for who moves the parameters by a rule of his own: a sampler.
//
// Inputs: those of the model, then the targets of the terms, then "weight/K" (f32 scalars), one for each term
// K = 0, 1, ...
// Outputs: "term/K" (the mean that the term is, without any weight), then, where gradients are wanted,
// "gradient/NAME" for each trainable state, in their order and shapes: of the sum of weight/K times term/K.
// State: the model's. Nothing is updated, and nothing drawn: the model is in the form in which it is served.
//
// What is not a row a sample is a mean over the batch, so that a target may run it in micro-batches where the
// model is splittable() (transform/batch_axis.h).
#pragma once

#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/transform/training/loss.h"

namespace superstep::transform {

struct LossGradientOptions {
  bool gradients = true;
};

// Throws Error as make_training_step() does.
graph::Graph make_loss_gradient(const graph::Graph& model, const std::vector<LossTerm>& terms,
                                const LossGradientOptions& options = {});

}  // namespace superstep::transform
