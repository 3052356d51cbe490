#include "superstep/physics/language/grammar_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace superstep::data {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

// Inside and outside scores of every span. Scores of words are divided by a number for each position, which
// keeps products of many small probabilities in range; `log_scale` is the sum of their logs.
class Chart {
 public:
  // emission(rule, i): the probability of the sight at position i under a word rule, its own included.
  template <class Emission>
  Chart(const Grammar& grammar, int length, Emission emission, bool best_only = false)
      : grammar_(grammar),
        length_(length),
        symbols_(static_cast<int>(grammar.symbols().size())),
        best_(best_only) {
    inside_.assign(at(length_) * at(length_) * at(symbols_), 0.0);
    for (int i = 0; i < length_; ++i) {
      for (const WordRule& rule : grammar_.word_rules()) gather(inside(i, i, rule.parent), emission(rule, i));
      scale(i);
    }
    for (int width = 2; width <= length_; ++width)
      for (int first = 0; first + width <= length_; ++first) fill_span(first, first + width - 1);
  }

  double log_total() const {
    const double total = length_ > 0 ? inside_[index(0, length_ - 1, grammar_.start())] : 0;
    return total > 0 ? std::log(total) + log_scale_ : -std::numeric_limits<double>::infinity();
  }

  void fill_outside() {
    outside_.assign(inside_.size(), 0.0);
    outside_[index(0, length_ - 1, grammar_.start())] = 1;
    for (int width = length_; width >= 2; --width)
      for (int first = 0; first + width <= length_; ++first) pass_outside(first, first + width - 1);
  }

  // Score of all that surrounds position i when `symbol` stands there.
  double outside(int i, int symbol) const { return outside_[index(i, i, symbol)]; }

 private:
  std::size_t index(int first, int last, int symbol) const {
    return (at(first) * at(length_) + at(last)) * at(symbols_) + at(symbol);
  }
  double& inside(int first, int last, int symbol) { return inside_[index(first, last, symbol)]; }

  void gather(double& into, double score) const { into = best_ ? std::max(into, score) : into + score; }

  void scale(int i) {
    double largest = 0;
    for (int s = 0; s < symbols_; ++s) largest = std::max(largest, inside(i, i, s));
    if (!(largest > 0)) return;
    for (int s = 0; s < symbols_; ++s) inside(i, i, s) /= largest;
    log_scale_ += std::log(largest);
  }

  void fill_span(int first, int last) {
    for (int middle = first; middle < last; ++middle) {
      const double* left = &inside_[index(first, middle, 0)];
      const double* right = &inside_[index(middle + 1, last, 0)];
      double* whole = &inside_[index(first, last, 0)];
      for (const BinaryRule& rule : grammar_.binary_rules())
        gather(whole[rule.parent], rule.probability * left[rule.left] * right[rule.right]);
    }
  }

  void pass_outside(int first, int last) {
    const double* whole = &outside_[index(first, last, 0)];
    for (int middle = first; middle < last; ++middle) {
      const double *left = &inside_[index(first, middle, 0)], *right = &inside_[index(middle + 1, last, 0)];
      double *out_left = &outside_[index(first, middle, 0)],
             *out_right = &outside_[index(middle + 1, last, 0)];
      for (const BinaryRule& rule : grammar_.binary_rules()) {
        const double score = rule.probability * whole[rule.parent];
        if (score == 0) continue;
        out_left[rule.left] += score * right[rule.right];
        out_right[rule.right] += score * left[rule.left];
      }
    }
  }

  const Grammar& grammar_;
  int length_, symbols_;
  bool best_;
  std::vector<double> inside_, outside_;
  double log_scale_ = 0;
};

double sentence_score(const Grammar& grammar, std::span<const int> sentence, bool best_only) {
  const auto emission = [&](const WordRule& rule, int i) {
    return rule.probability * grammar.list(rule).probability(sentence[at(i)]);
  };
  return Chart(grammar, static_cast<int>(sentence.size()), emission, best_only).log_total();
}

}  // namespace

double log_probability(const Grammar& grammar, std::span<const int> sentence) {
  return sentence_score(grammar, sentence, false);
}

double log_probability_of_best_derivation(const Grammar& grammar, std::span<const int> sentence) {
  return sentence_score(grammar, sentence, true);
}

std::vector<double> masked_word_nats(const Grammar& grammar, const MaskingChannel& channel,
                                     std::span<const int> truth, std::span<const int> observed,
                                     const std::vector<bool>& scored) {
  const double kept = 1 - channel.masked - channel.garbled, any_word = 1.0 / channel.words;
  // Probability of the sight given a word: `same` more when the word is the one seen.
  const double same = 1 - channel.chosen + channel.chosen * kept,
               other = channel.chosen * channel.garbled * any_word;
  const auto emission = [&](const WordRule& rule, int i) {
    const int seen = observed[at(i)];
    if (seen == hidden_word) return rule.probability * channel.chosen * channel.masked;
    return rule.probability * (same * grammar.list(rule).probability(seen) + other);
  };
  Chart chart(grammar, static_cast<int>(truth.size()), emission);
  chart.fill_outside();
  std::vector<double> nats(truth.size(), 0.0);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!scored[i]) continue;
    const int seen = observed[i];
    // The same probabilities, now that the position is known to be chosen.
    const double chosen_other = channel.garbled * any_word;
    double right = 0, all = 0;
    for (const WordRule& rule : grammar.word_rules()) {
      const double around = chart.outside(static_cast<int>(i), rule.parent) * rule.probability;
      const double true_word = grammar.list(rule).probability(truth[i]);
      if (seen == hidden_word) {
        right += around * true_word;
        all += around;
      } else {
        right += around * true_word * (chosen_other + (seen == truth[i] ? kept : 0));
        all += around * (chosen_other + kept * grammar.list(rule).probability(seen));
      }
    }
    nats[i] = -std::log(right / all);
  }
  return nats;
}

}  // namespace superstep::data
