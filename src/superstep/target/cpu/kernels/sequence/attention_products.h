// The two products of attention, scores and what they weigh, in f32 or in pairs of bf16. Internal to the
// kernels.
#pragma once

#include <memory>

#include "superstep/target/cpu/kernels/sequence/attention_parts.h"

namespace superstep::kernels {

// One attention's operands as its products want them.
struct AttentionOperands {
  const void *q, *v;
  void *keys, *weights;
};

class AttentionProducts {
 public:
  virtual ~AttentionProducts() = default;
  // Those of attention (i, j), where they lie or packed into scratch.
  virtual AttentionOperands place(const Arguments& arguments, std::int64_t i, std::int64_t j,
                                  Scratch& scratch) const = 0;
  // scores [row][key] = q k^T of a block, in f32.
  virtual void score(const AttentionOperands& operands, std::int64_t row_block, std::int64_t key_block,
                     float* scores) const = 0;
  // result [row][width] (+)= weights v; added to where it is not the first block of keys.
  virtual void weigh(const AttentionOperands& operands, std::int64_t row_block, std::int64_t key_block,
                     float* weights, float* result) const = 0;
  virtual std::int64_t scratch_floats() const = 0;
  virtual ElementType type() const = 0;
};

// In pairs where q, k and v are bf16 and the processor multiplies pairs, else in f32.
std::unique_ptr<const AttentionProducts> attention_products(const Attention& attention,
                                                            const AttentionBlocks& blocks);

}  // namespace superstep::kernels
