// The passes over blocks of scores of each instruction set. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

// Rows of scores with what is done to them before softmax (attention.h). `bias` and `condition` point at the
// block's first element, null where there is none; their columns lie 0 or 1 apart.
struct ScoreBlock {
  float* scores = nullptr;
  std::int64_t stride = 0, rows = 0, keys = 0;
  float scale = 1;
  const float* bias = nullptr;
  std::int64_t bias_row = 0, bias_column = 0;
  float bias_scale = 1;
  const std::uint8_t* condition = nullptr;
  std::int64_t condition_row = 0, condition_column = 0;
  bool hidden_if = false;
  float hidden = 0;
};

// What softmax keeps of each row.
struct RowState {
  float* maximum;     // of the scores so far
  float* sum;         // of exp(score - maximum)
  float* correction;  // exp(old maximum - new one): what sums made before are to be multiplied with
};

struct AttentionLoops {
  // Scores scaled, biased and hidden, in place; `state` takes up their maxima unless it is null.
  void (*finish_scores)(const ScoreBlock& block, const RowState* state);
  // Scores become exp(score - maximum), summed up, times `dropped` (rows as far apart) unless it is null.
  void (*exponentials)(const ScoreBlock& block, const RowState& state, const float* dropped);
  // x[row] *= factor[row].
  void (*scale_rows)(float* x, std::int64_t stride, std::int64_t rows, std::int64_t width,
                     const float* factor);
  // result[row] = sum of a[row] * b[row].
  void (*row_dots)(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride,
                   std::int64_t rows, std::int64_t width, float* result);
  // From scores (finished) and the cotangents of the weights: scores become the weights that multiplied v,
  // d_weights those of the products: scale * weight * (d_weight * dropped - dot); 0 where hidden.
  void (*gradient)(const ScoreBlock& block, float* d_weights, const float* dropped, const float* maximum,
                   const float* inverse_sum, const float* dot);
};

// For the instruction set in force.
AttentionLoops attention_loops();

}  // namespace superstep::kernels
