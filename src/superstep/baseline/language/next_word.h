// The next word of a text guessed from the two before it by counting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "superstep/baseline/baseline.h"
#include "superstep/baseline/language/kneser_ney.h"

namespace superstep::baseline {

// Tokens of a block before its padding, which is negative (texts of others, whose tokens may be 0) or, where
// none is, zeros (generated text).
std::size_t used_tokens(std::span<const std::int32_t> tokens);

// P(token | the two before it), by the interpolated form of R. Kneser and H. Ney, ICASSP 1995. No token has
// probability 0. Tokens are below 2^20.
class TrigramModel {
 public:
  explicit TrigramModel(int vocabulary) : vocabulary_(vocabulary) {}
  // Counts every token of a block up to its padding but the first, which is given.
  void count(std::span<const std::int32_t> tokens);
  double probability(std::int32_t before_last, std::int32_t last, std::int32_t token) const;
  // The sum of -log of the probabilities of the tokens that count() would take, and how many they are.
  struct Loss {
    double nats = 0;
    std::int64_t tokens = 0;
  };
  Loss loss(std::span<const std::int32_t> tokens) const;

 private:
  int vocabulary_;
  KneserNeyLevel single_, pair_, triple_;
};

Entry gpt2_baseline();
Entry llama_baseline();

}  // namespace superstep::baseline
