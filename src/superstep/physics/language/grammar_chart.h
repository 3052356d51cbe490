// The inside-outside algorithm (J. K. Baker 1979): probabilities of sentences of a grammar, and of words that
// were hidden or garbled, exactly.
#pragma once

#include <span>
#include <vector>

#include "superstep/physics/language/grammar.h"

namespace superstep::data {

// log of the probability of a sentence, summed over its derivations; -infinity when the grammar cannot make
// it.
double log_probability(const Grammar& grammar, std::span<const int> sentence);
// The same of the likeliest derivation alone.
double log_probability_of_best_derivation(const Grammar& grammar, std::span<const int> sentence);

// How words reach the reader of a masked language model (Devlin et al. 2019): each is chosen with probability
// `chosen`, and a chosen one is replaced by a mask (`masked` of them), by any of `words` words alike
// (`garbled`), or left as it is.
struct MaskingChannel {
  double chosen = 0.15, masked = 0.8, garbled = 0.1;
  int first_word = 0, words = 1;
};

inline constexpr int hidden_word = -1;

// Bayes' answer at the chosen positions of one sentence: for each, -log of the probability (nats) that the
// grammar gives to the true word, knowing everything that is seen (`observed`, hidden_word for a mask) and
// that this position was chosen. No model can have a lower mean loss. `truth` holds the true words; positions
// where `scored` is false get 0.
std::vector<double> masked_word_nats(const Grammar& grammar, const MaskingChannel& channel,
                                     std::span<const int> truth, std::span<const int> observed,
                                     const std::vector<bool>& scored);

}  // namespace superstep::data
