// A direction of RNN, GRU or LSTM as graphs of what its loop over steps does, and the same of its derivative:
// for targets that loop, and lower these graphs as any other.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "superstep/op/core/definition.h"

namespace superstep::op {

// What goes through the loop is, in this order: the state h [batch, H] and of an LSTM c; and what stays the
// same in all steps: R, biases, P, those that there are, and at the end the lengths, where they are given.
struct RecurrentLoop {
  bool backwards = false;  // the loop begins at the last step
  bool has_cell = false;   // there is a c
  bool has_lengths = false;
  std::size_t kept = 0;         // how many stay the same
  std::size_t kept_floats = 0;  // the first of them, which have cotangents

  // Inputs: the node's own, those that are given. Outputs: rows [steps, batch, G H], the state before the
  // first step, what stays the same.
  graph::Graph before;
  // Inputs: the step's number (i64), its row [batch, G H], state, what stays the same. Outputs: y [batch, H],
  // the next state.
  graph::Graph step;
  // Input: y of all steps [steps, batch, H], in the order of the loop's places; the lengths. Output: in that
  // of time; and its own inverse.
  graph::Graph in_order;

  // Inputs: those of `step`, then the cotangents of its outputs. Outputs: the cotangents of the row, the
  // state and the floats that stay the same.
  graph::Graph step_back;
  // Inputs: those of `before`, then the cotangents of its outputs but the lengths. Outputs: the cotangents of
  // the node's floating inputs that are given, in their order.
  graph::Graph before_back;
};

// `inputs`: the types of the node's X W R B sequence_lens initial_h initial_c P; none where left out.
// `direction`: 0, or 1 of both.
RecurrentLoop recurrent_loop(std::string_view op, const Attributes& attributes,
                             const std::vector<std::optional<ValueType>>& inputs, int direction);

}  // namespace superstep::op
