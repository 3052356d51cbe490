// Scaled dot-product attention and rotary position embedding, as in operator sets 23 and 24.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

struct AttentionAttributes {
  bool causal = false;
  std::int64_t query_heads = 0, key_heads = 0;  // needed for inputs of rank 3
  double scale = 0;                             // 0: 1 / sqrt(head size)
  double softcap = 0;                           // scores become c tanh(score / c); 0: they stay
};

// softmax(q k' * scale + mask) v. Inputs [batch, heads, length, head size], or [batch, length, heads * head
// size]; several query heads may share a key head. `mask` broadcasts to [batch, heads, queries, keys]: bool
// (true takes part) or numbers that are added.
Var attention(Var q, Var k, Var v, Var mask = {}, const AttentionAttributes& attributes = {});

// Turns pairs of elements of each head by angles whose cosines and sines are looked up by position.
// x [batch, heads, length, head size] or [batch, length, heads * head size]; caches [positions, d / 2] with
// `positions` [batch, length], else [batch, length, d / 2], for the first d elements of a head.
struct RotaryAttributes {
  bool interleaved = false;    // pairs are neighbours, else halves
  std::int64_t dimension = 0;  // d; 0: the whole head
  std::int64_t heads = 0;      // needed for inputs of rank 3
};
Var rotary_embedding(Var x, Var cosines, Var sines, Var positions = {},
                     const RotaryAttributes& attributes = {});

std::span<const Definition> attention_operators();
std::span<const Definition> sequence_state_operators();  // LinearAttention CausalConvWithState

}  // namespace superstep::op
