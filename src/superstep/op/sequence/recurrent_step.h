// The steps of recurrent cells, and what stands before and behind them: shared by the operators unrolled
// (recurrent.cpp) and in a loop (recurrent_loop.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "superstep/op/core/definition.h"
#include "superstep/op/sequence/recurrent_activation.h"

namespace superstep::op::recurrent {

// Inputs of all three operators: X W R B sequence_lens initial_h; LSTM adds initial_c and P.
enum Input : std::size_t { x_input, w_input, r_input, b_input, lengths_input, h_input, c_input, p_input };

struct Sizes {
  std::int64_t steps, batch, inputs, hidden;
  int directions;
  bool batch_first;
};
Sizes sizes_of(const Attributes& attributes, const Shape& x, const Shape& r);
Shape state_shape(const Sizes& sizes);

// What one direction works with: matrices without the direction's axis.
struct Direction {
  Var w, r, bias_w, bias_r, peephole;  // biases [1, G H]
  Var h, c;                            // the state before the first step [batch, H]
  std::vector<Activation> functions;
  bool reversed = false;
};

struct State {
  Var h, c;
};

// `input` is x W' for the step, with the input's bias where `Cell::adds_input_bias` is not. Gives the state
// after the step.
using Step = State (*)(const DerivativeContext& context, const Direction& d, Var input, State state);

struct Cell {
  std::string_view op;
  int gates;
  bool has_cell;         // a second state
  bool adds_input_bias;  // in each step, and not for all steps at once
  Step step;
  std::vector<std::string> functions;
};
const Cell& cell_of(std::string_view op);

Direction direction_of(const DerivativeContext& context, const Cell& cell, int number, const Sizes& sizes);

// Where sequences have lengths of their own, the last steps of some are not theirs: those keep their state
// and give zeros, and backwards each is read from its own end. Invalid where all are of one length.
Var lengths_of(const DerivativeContext& context, const Sizes& sizes);
inline bool goes_by_length(const Direction& d, Var lengths) { return d.reversed && lengths.valid(); }
// Of all steps [steps, batch, ...], in each sequence's own order, and back.
Var in_order(const Direction& d, Var sequence, Var lengths);

// x W' of all steps [steps * batch, G H], from X with steps first.
Var rows_of_inputs(const Cell& cell, const Direction& d, Var x, const Sizes& sizes);

struct Stepped {
  Var y;
  State next;
};
// One step; `now` is its number, in the type of the lengths, where there are any.
Stepped stepped(const DerivativeContext& context, const Cell& cell, const Direction& d, Var input,
                State state, Var lengths, Var now);

}  // namespace superstep::op::recurrent
