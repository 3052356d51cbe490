// The derivatives of recurrent cells over a whole sequence, for targets that go back through time in one
// kernel, or in a loop.
#pragma once

#include "superstep/op/core/derivative.h"

namespace superstep::op {

// The operators' names, for who takes them apart or has a kernel of them.
inline constexpr std::string_view lstm_gradient_operator = "superstep.LSTMGradient";
inline constexpr std::string_view recurrent_gradient_operator = "superstep.RecurrentGradient";

// superstep.LSTMGradient: inputs X W R B initial_h initial_c as of LSTM, all given; Y as LSTM made it (which
// spares a target the recurrence forward); the cotangents of Y, Y_h and Y_c, each left out where it is zero.
// Outputs: the cotangents of the first six. Attributes are those of the LSTM node, which has the default
// activations and nothing of peepholes, clipping, coupled gates and lengths.
std::vector<Var> lstm_gradient(std::span<const Var> inputs, Var y, std::span<const Var> cotangents,
                               const Attributes& attributes);

// Whether LSTM with these inputs and attributes is one that the operator stands for.
bool has_lstm_gradient(const DerivativeContext& context);

std::vector<Var> vjp_lstm(const DerivativeContext& context, std::span<const Var> cotangents);

// superstep.RecurrentGradient, of any RNN, GRU or LSTM: attribute `cell` names which, the others are its own.
// Inputs: X W R B sequence_lens initial_h initial_c P as the cell's (B and initial states given, all that the
// cell has but the lengths; of RNN and GRU no initial_c and P), Y as it made it, or left out, and the
// cotangents of Y, Y_h and Y_c, each left out where it is zero. Outputs: the cotangents of X W R B initial_h,
// and of an LSTM's initial_c and P.
std::vector<Var> vjp_recurrent(std::string_view op, const DerivativeContext& context,
                               std::span<const Var> cotangents, const std::vector<bool>& wanted);

std::span<const Definition> recurrent_gradient_operators();

}  // namespace superstep::op
