// Losses that compare with class labels.
#pragma once

#include <optional>
#include <string>

#include "superstep/op/core/definition.h"

namespace superstep::op {

struct LossAttributes {
  std::string reduction = "mean";  // or "sum", "none"
  std::optional<std::int64_t> ignore_index = std::nullopt;
};

// -weights[label] log_probabilities[n, label, ...]: log probabilities [N, C, ...], labels (integer) [N, ...],
// weights [C] optional. "mean" divides by the sum of the weights of the labels that count.
Var negative_log_likelihood_loss(Var log_probabilities, Var labels, Var weights = {},
                                 const LossAttributes& attributes = {});
// The same of log_softmax(scores, 1).
Var softmax_cross_entropy_loss(Var scores, Var labels, Var weights = {},
                               const LossAttributes& attributes = {});

std::span<const Definition> loss_operators();

}  // namespace superstep::op
