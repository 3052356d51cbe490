// Probabilistic context-free grammars: sentences, their probability, and the entropy of the language.
//
// A grammar is in Chomsky's normal form: a symbol becomes two symbols, or one word of a word list. What it
// makes of a symbol is drawn from the symbol's rules, a word from the list's probabilities.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::data {

// Words first .. first + size - 1, word k of them with a probability that falls with its rank as
// 1 / (k + 1 + shift)^exponent (Zipf and Mandelbrot).
class WordList {
 public:
  WordList(int first, int size, double exponent, double shift);
  int first() const { return first_; }
  int size() const { return static_cast<int>(probability_.size()); }
  bool contains(int word) const { return word >= first_ && word < first_ + size(); }
  double probability(int word) const;  // 0 for a word that is not in the list
  int draw(RandomStream& random) const;
  double entropy() const { return entropy_; }  // nats

 private:
  int first_;
  std::vector<double> probability_, cumulative_;
  double entropy_ = 0;
};

struct BinaryRule {
  int parent, left, right;
  double probability;
};
struct WordRule {
  int parent, list;  // list: position in the grammar's word lists
  double probability;
};

class Grammar {
 public:
  // `start` and the symbols of the rules are 0 .. symbols-1. Throws Error (invalid_argument) when the
  // probabilities of a symbol do not add to 1, or when sentences do not end (an expected length that
  // diverges).
  Grammar(std::vector<std::string> symbols, std::vector<BinaryRule> binary, std::vector<WordRule> words,
          std::vector<WordList> lists, int start);

  // The words of a sentence, left to right.
  std::vector<int> draw(RandomStream& random) const { return draw_from(start_, random); }
  // The same of what the first rule of the derivation makes: the words of its left symbol and of its right
  // one. The start has binary rules alone.
  struct Halves {
    std::vector<int> left, right;
  };
  Halves draw_halves(RandomStream& random) const;

  // How likely a sentence has n words, for n = 0 .. most.
  std::vector<double> length_probabilities(int most) const;

  // Entropy of a derivation in nats: the sum over symbols of how often one is expected in a derivation times
  // the entropy of its choice. It is the entropy of the language where every sentence has one derivation.
  double derivation_entropy() const;
  double expected_length() const;  // words of a sentence

  const std::vector<std::string>& symbols() const { return symbols_; }
  const std::vector<BinaryRule>& binary_rules() const { return binary_; }
  const std::vector<WordRule>& word_rules() const { return words_; }
  const WordList& list(const WordRule& rule) const { return lists_[static_cast<std::size_t>(rule.list)]; }
  int start() const { return start_; }

 private:
  std::vector<int> draw_from(int symbol, RandomStream& random) const;
  void check_probabilities() const;
  std::vector<double> expected_counts() const;  // of each symbol in a derivation

  std::vector<std::string> symbols_;
  std::vector<BinaryRule> binary_;
  std::vector<WordRule> words_;
  std::vector<WordList> lists_;
  int start_;
  std::vector<double> expected_;
};

}  // namespace superstep::data
