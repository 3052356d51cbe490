// Scaled dot-product attention without the matrix of scores in memory:
//   y = softmax(scale * q k^T + bias_scale * bias) v
// and its gradient.
//
// A block of rows of scores stays in the first- or second-level cache: the product makes it, one pass adds
// the bias and finds the rows' maxima, one makes exponentials and their sums, the second product uses it up.
// Longer sequences go over blocks of keys with running maxima and sums (M. Milakov and N. Gimelshein, Online
// normalizer calculation for softmax, arXiv:1805.02867). The gradient makes the scores again from q, k and
// the rows' maxima and sums (T. Dao et al., FlashAttention, arXiv:2205.14135): memory grows with the length,
// not with its square.
#pragma once

#include "superstep/target/cpu/kernels/core/kernel.h"
#include "superstep/target/cpu/kernels/product/matmul.h"

namespace superstep::kernels {

// Matrices of one of batch[0] * batch[1] attentions: q [rows][depth], k [keys][depth], v [keys][width],
// y [rows][width]; f32 or bf16, computed in f32. Any strides; an operand that is not f32 with contiguous
// rows is copied into scratch.
//
// `bias` and `condition` are [rows][keys], broadcast by strides of 0, with a column stride of 0 or 1: f32
// added to the scores, and u8 (or boolean): where it is non-zero == hidden_if the score is `hidden`.
//
// With `keep` below 1 weights are dropped: each is multiplied with 1 / keep or 0 (random_mask.h); sample
// number first_sample + batch[0]'s index, element number (batch[1]'s index * rows + row) * keys + key.
struct Attention {
  std::array<std::int64_t, 2> batch = {1, 1};
  std::int64_t rows = 1, keys = 1, depth = 1, width = 1;
  // So many neighbours along batch[1] read the same k and v, whose stride along it leads to the next other
  // ones: heads of queries that share heads of keys. Not with a gradient.
  std::int64_t sharing = 1;
  MatrixStrides q, k, v, y;
  float scale = 1;
  bool has_bias = false;
  MatrixStrides bias;
  float bias_scale = 1;
  bool has_condition = false, hidden_if = false;
  MatrixStrides condition;
  float hidden = 0;
  float keep = 1;
  // Rows whose softmax is NaN, as where all of a row is hidden by minus infinity, give zeros. Not with a
  // gradient.
  bool nan_to_zero = false;
};

// Slots: inputs q, k, v, [bias], [condition], [RandomAddress*]; outputs y, statistics: f32
// [batch 0][batch 1][2][rows], the rows' maxima and the inverses of their sums.
// A row whose scores are all minus infinity gives NaN, as softmax does, or zeros with nan_to_zero.
Prepared prepare_attention(const Attention& attention);

// dy lies as given; dq, dk, dv likewise. Slots: inputs q, k, v, [bias], [condition], [RandomAddress*], y,
// statistics, dy; outputs dq, dk, dv. They must not overlap the inputs.
struct AttentionGradient {
  Attention forward;
  MatrixStrides dy, dq, dk, dv;
};
Prepared prepare_attention_gradient(const AttentionGradient& gradient);

// Bytes of the statistics.
std::size_t statistics_bytes(const Attention& attention);

std::string fault_of(const Attention& attention);

}  // namespace superstep::kernels
