// The tangent of an LSTM over a whole sequence.
#pragma once

#include "superstep/op/core/derivative.h"

namespace superstep::op {

// Where the node is one that has a gradient of its own (recurrent_gradient.h), of its states as it made them:
// products by the inputs, by the states before each step and by their directions are made for all steps at
// once, and along time goes one product a step, that of the state's tangent. Else the rule of the LSTM
// unrolled.
std::vector<Var> jvp_lstm(const DerivativeContext& context, std::span<const Var> tangents,
                          Decomposition unrolled);

}  // namespace superstep::op
