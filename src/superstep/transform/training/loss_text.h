// Losses as users write them.
//
//   --loss mse                                                 of the only output
//   --loss 'huber(delta=0.5):position,0.1*l1:width'            a sum of terms, each of an output
//   --loss 'cross_entropy(class_weights=1:4,ignore=255):mask'
//   --loss 'bce_with_logits(positive_weight=3,sample_weights=trust)'
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "superstep/transform/training/loss.h"

namespace superstep::transform {

// The terms, whose outputs are empty where the text names none; of an empty text mse. Throws Error
// (invalid_argument) naming --loss, the kind or the constant, with the nearest name.
std::vector<LossTerm> loss_from_text(std::string_view text);

}  // namespace superstep::transform
