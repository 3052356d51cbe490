// Masked words guessed from their two neighbours by counting, and by the grammar that made the text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <unordered_map>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/baseline/baseline.h"
#include "superstep/data/grammar_chart.h"

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
  struct Context {
    double total = 0, kinds = 0;  // how often it was seen, and with how many different words
  };
  using Contexts = std::unordered_map<std::uint64_t, Context>;
  using Counts = std::unordered_map<std::uint64_t, double>;
  struct Level {
    Contexts contexts;
    Counts counts;
    double once = 0, twice = 0;                              // events seen so often
    bool count(std::uint64_t context, std::uint64_t event);  // was it the first time?
    double discount() const;
    double mix(std::uint64_t context, std::uint64_t event, double below) const;
  };
  int vocabulary_;
  Level single_, left_, right_, both_;
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

}  // namespace superstep::baseline
