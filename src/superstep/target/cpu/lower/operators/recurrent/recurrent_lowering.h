// What lowerings of recurrent layers share: where sequences, states and biases lie.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// Inputs of RNN, GRU and LSTM.
enum RecurrentInput : std::size_t { x_input, w_input, r_input, b_input, lengths_input, h_input };

ValueId input_of(const Node& node, std::size_t i);
bool has_input(const Node& node, std::size_t i);

// A byte offset into an operand, given in f32 elements.
DraftOperand shifted(DraftOperand operand, std::int64_t elements);

class RecurrentLowering {
 protected:
  // A sequence in memory: row (t, n) at t * step + n * sample, its elements contiguous.
  struct Sequence {
    DraftOperand place;
    std::int64_t step = 0, sample = 0;
  };
  struct Strided {
    std::int64_t step, sample, direction;
  };

  // `kernel` is what refusals call it.
  RecurrentLowering(Lowering& lowering, const Node& node, const char* kernel);

  bool has(std::size_t input) const { return has_input(node_, input); }
  // Whether these inputs, and all results, lie as kernels take them.
  Lowered check(std::initializer_list<std::size_t> inputs) const;

  // [steps, D, batch, H], or [batch, steps, D, H].
  Strided y_strides(ValueId y) const;
  // How x will lie for the kernel: as it is where its rows are equally spaced, else as a copy without gaps.
  Sequence planned_sequence(ValueId id) const;
  Sequence equally_spaced(ValueId id);

  DraftOperand zeros(std::int64_t elements);
  // [D, batch, H] (or [batch, D, H] with one direction): what direction d starts from, and where it ends.
  DraftOperand initial(std::size_t input, std::int64_t d);
  DraftOperand last(std::size_t output, std::int64_t d);

  Lowering& lowering_;
  const Node& node_;
  const char* kernel_;
  bool batch_first_, reverse_;
  std::int64_t steps_, batch_, inputs_, hidden_, directions_;
};

}  // namespace superstep::target::cpu
