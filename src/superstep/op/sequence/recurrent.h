// Recurrent cells over a sequence: x [steps, batch, inputs] (or [batch, steps, inputs] with layout 1).
//
// Weights w [D, G H, inputs], recurrent weights r [D, G H, H], bias [D, 2 G H] (of w, then of r) with D = 2
// for both directions, G gates and H hidden units; initial state [D, batch, H]. The result holds every
// step's hidden state [steps, D, batch, H] and the last [D, batch, H].
#pragma once

#include <string>

#include "superstep/op/core/definition.h"

namespace superstep::op {

struct RecurrentAttributes {
  std::string direction = "forward";          // reverse, bidirectional
  std::vector<std::string> activations = {};  // {}: the operator's own
  bool linear_before_reset = false;           // GRU
  bool batch_first = false;                   // layout 1
};
struct Recurrent {
  Var y, last, last_cell;  // the last is of LSTM alone
};

Recurrent rnn(Var x, Var w, Var r, Var bias = {}, Var initial = {},
              const RecurrentAttributes& attributes = {});
Recurrent gru(Var x, Var w, Var r, Var bias = {}, Var initial = {},
              const RecurrentAttributes& attributes = {});
Recurrent lstm(Var x, Var w, Var r, Var bias = {}, Var initial = {}, Var initial_cell = {},
               const RecurrentAttributes& attributes = {});

std::span<const Definition> recurrent_operators();

}  // namespace superstep::op
