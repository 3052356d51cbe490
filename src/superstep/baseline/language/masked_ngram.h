// Masked words guessed from their two neighbours by counting, and by the grammar that made the text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/language/kneser_ney.h"
#include "superstep/physics/language/grammar_chart.h"

namespace superstep::baseline {

// P(word | left, right) from counts, by the interpolated form of R. Kneser and H. Ney, ICASSP 1995, for a gap
// between two words: triples are discounted, and what that frees goes to the mean of P(word | left) and
// P(word | right), and from these to single words. Below the triples a word counts once for every different
// context it was seen in, not for every time. No word has probability 0. Tokens are below 2^20.
class NeighborModel {
 public:
  explicit NeighborModel(int vocabulary) : vocabulary_(vocabulary) {}
  void count(std::int32_t left, std::int32_t word, std::int32_t right);
  double probability(std::int32_t left, std::int32_t word, std::int32_t right) const;

 private:
  int vocabulary_;
  KneserNeyLevel single_, left_, right_, both_;
};

using Tokens = std::span<const std::int32_t>;

// Adds the words of a block, each between the neighbours that are seen.
void count_neighbors(NeighborModel& model, Tokens tokens, Tokens seen);

// Loss at position `at`, given what its neighbours say and what is seen there: Bayes' rule with the way words
// are hidden. The position has a neighbour on either side.
double neighbor_loss(const NeighborModel& model, const data::MaskingChannel& channel, Tokens seen,
                     std::size_t at, std::int32_t truth);

Entry bert_small_baseline();
Entry distilbert_baseline();
Entry bert_large_baseline();

}  // namespace superstep::baseline
