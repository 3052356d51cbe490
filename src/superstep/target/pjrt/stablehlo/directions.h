// Recurrent layers in a program: tensors without the axis of directions, and back; steps of a sequence.
#pragma once

#include <vector>

#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target::stablehlo {

struct RecurrentSizes {
  std::int64_t steps, batch, inputs, hidden, directions;
  bool batch_first;
};
RecurrentSizes recurrent_sizes(const graph::Attributes& attributes, const Shape& x, const Shape& r);

// One step of all [steps, ...]: `t` is its number, an integer [].
Value step_at(Emitter& emit, const Value& all, const Value& t);
Value with_step(Emitter& emit, const Value& all, const Value& value, const Value& t);
// The states before each step, of those after each [steps, batch, H]: the start first, where the steps are
// gone through from the last to the first behind them.
Value states_before(Emitter& emit, const Value& after, const Value& start, bool backwards);

// Runs `step` so many times over `state`, which begins with the number of the run, i32 [], that is counted.
std::vector<Value> count_steps(Emitter& emit, std::int64_t steps, std::vector<Value> state,
                               const Emitter::Body& step);
// The place along a sequence of the step with this number.
Value place_of_step(Emitter& emit, const Value& number, std::int64_t steps, bool backwards);

class Directions {
 public:
  // `x`, `r`: which inputs of the node are X and R.
  Directions(const Site& site, std::size_t x, std::size_t r);

  const RecurrentSizes& sizes() const { return sizes_; }
  bool is_reversed(std::int64_t direction) const;
  Value sequence(std::size_t input) const;  // steps first
  Value matrix(std::size_t input, std::int64_t direction) const;
  Value state(std::size_t input, std::int64_t direction) const;  // zeros where it is left out
  Value outputs(std::size_t input,
                std::int64_t direction) const;  // of Y, and what is shaped like it: [T, B, H]

  Value stacked(const std::vector<Value>& of_each, int axis) const;
  Value stacked_states(const std::vector<Value>& of_each) const;
  Value stacked_outputs(const std::vector<Value>& of_each) const;

 private:
  Value without(const Value& x, int axis, std::int64_t place) const;

  const Site& s_;
  RecurrentSizes sizes_;
};

}  // namespace superstep::target::stablehlo
