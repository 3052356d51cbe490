// Weights of an LSTM in the order that its kernels read, and rows of sequences rounded for them.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/target/cpu/kernels/core/kernel.h"
#include "superstep/target/cpu/kernels/sequence/lstm.h"

namespace superstep::kernels {

// Whether products of bf16 pairs can be made here: else a narrow LSTM is to be asked for as a wide one.
bool multiplies_pairs();

// Columns of R in a product of the gradient.
std::int64_t lstm_gradient_panel(std::int64_t hidden);

// Threads that can share a step of as many panels.
int shares_of_step(const Lstm& lstm, std::int64_t panels);

// Where weights come from, f32 in ONNX's order, and how they are packed, all directions one after the other.
struct LstmWeights {
  enum class Use : std::uint8_t {
    forward,     // W and R: [panel of 16 units][columns][gate][16], or of pairs [columns / 2][gate][16][2]
    gradient_w,  // [panel][gate][16][columns]
    gradient_r,  // the same; of pairs [panel of columns][4 hidden / 2][columns of the panel][2]
  };
  Use use = Use::forward;
  std::int64_t directions = 1, hidden = 16, columns = 16;  // columns: inputs or hidden
  bool narrow = false;                                     // bf16; an odd depth is padded with zeros
};

// Of one direction, packed.
std::size_t packed_bytes(const LstmWeights& weights);
Prepared prepare_lstm_pack(const LstmWeights& weights);

// Rows of a sequence, some steps of `batch` samples each, as dense bf16 of an even length.
class NarrowRows {
 public:
  NarrowRows() = default;
  NarrowRows(std::int64_t batch, std::int64_t length, std::int64_t step, std::int64_t sample);

  std::int64_t length() const { return length_; }  // of a row, padded
  std::size_t bytes(std::int64_t steps) const;     // with what keeps the next ones aligned
  void convert(const float* from, std::int64_t first_step, std::int64_t steps, bf16* to) const;

 private:
  std::int64_t batch_ = 0, length_ = 0, step_ = 0;
  std::shared_ptr<const Kernel> one_step_;
};

}  // namespace superstep::kernels
