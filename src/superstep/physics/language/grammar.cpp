#include "superstep/physics/language/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

double surprise(double probability) { return probability > 0 ? -probability * std::log(probability) : 0; }

}  // namespace

WordList::WordList(int first, int size, double exponent, double shift) : first_(first) {
  if (size < 1) throw Error(ErrorCode::invalid_argument, "a word list without words");
  double total = 0;
  for (int k = 0; k < size; ++k) {
    probability_.push_back(std::pow(k + 1 + shift, -exponent));
    total += probability_.back();
  }
  double sum = 0;
  for (double& probability : probability_) {
    probability /= total;
    cumulative_.push_back(sum += probability);
    entropy_ += surprise(probability);
  }
}

double WordList::probability(int word) const { return contains(word) ? probability_[at(word - first_)] : 0; }

int WordList::draw(RandomStream& random) const {
  const auto place = std::ranges::upper_bound(cumulative_, random.uniform()) - cumulative_.begin();
  return first_ + static_cast<int>(std::min<std::ptrdiff_t>(place, size() - 1));
}

Grammar::Grammar(std::vector<std::string> symbols, std::vector<BinaryRule> binary,
                 std::vector<WordRule> words, std::vector<WordList> lists, int start)
    : symbols_(std::move(symbols)),
      binary_(std::move(binary)),
      words_(std::move(words)),
      lists_(std::move(lists)),
      start_(start) {
  check_probabilities();
  expected_ = expected_counts();
}

void Grammar::check_probabilities() const {
  std::vector<double> total(symbols_.size());
  for (const BinaryRule& rule : binary_) total[at(rule.parent)] += rule.probability;
  for (const WordRule& rule : words_) total[at(rule.parent)] += rule.probability;
  for (std::size_t i = 0; i < total.size(); ++i)
    if (std::abs(total[i] - 1) > 1e-9)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("the rules of symbol '{}' have a total probability of {}", symbols_[i], total[i]));
}

// Generation after generation of the derivation, until no symbol is left to expect.
std::vector<double> Grammar::expected_counts() const {
  constexpr int most_generations = 100000;
  std::vector<double> total(symbols_.size()), now(symbols_.size());
  now[at(start_)] = 1;
  for (int generation = 0; generation < most_generations; ++generation) {
    std::vector<double> next(symbols_.size());
    double left = 0;
    for (std::size_t i = 0; i < now.size(); ++i) total[i] += now[i];
    for (const BinaryRule& rule : binary_) {
      next[at(rule.left)] += now[at(rule.parent)] * rule.probability;
      next[at(rule.right)] += now[at(rule.parent)] * rule.probability;
    }
    for (const double count : next) left += count;
    if (left < 1e-15) return total;
    if (left > 1e6) break;
    now = std::move(next);
  }
  throw Error(ErrorCode::invalid_argument, "sentences of this grammar do not end: recursion is too likely");
}

std::vector<int> Grammar::draw_from(int first, RandomStream& random) const {
  std::vector<int> words, waiting = {first};
  while (!waiting.empty()) {
    const int symbol = waiting.back();
    waiting.pop_back();
    double rest = random.uniform();
    const BinaryRule* last_binary = nullptr;
    const WordRule* last_word = nullptr;
    for (const BinaryRule& rule : binary_)
      if (rule.parent == symbol && rest >= 0) rest -= rule.probability, last_binary = &rule;
    if (rest >= 0)
      for (const WordRule& rule : words_)
        if (rule.parent == symbol && rest >= 0) rest -= rule.probability, last_word = &rule;
    if (last_word != nullptr) {
      words.push_back(list(*last_word).draw(random));
    } else {
      waiting.push_back(last_binary->right);
      waiting.push_back(last_binary->left);
    }
  }
  return words;
}

Grammar::Halves Grammar::draw_halves(RandomStream& random) const {
  double rest = random.uniform();
  const BinaryRule* chosen = nullptr;
  for (const BinaryRule& rule : binary_)
    if (rule.parent == start_ && rest >= 0) rest -= rule.probability, chosen = &rule;
  if (chosen == nullptr)
    throw Error(ErrorCode::invalid_argument, "sentences of this grammar do not begin with two parts");
  std::vector<int> left = draw_from(chosen->left, random);
  return {std::move(left), draw_from(chosen->right, random)};
}

std::vector<double> Grammar::length_probabilities(int most) const {
  // Of each symbol; a symbol of two parts has the words of both.
  std::vector<std::vector<double>> of(symbols_.size(), std::vector<double>(at(most) + 1, 0.0));
  if (most > 0)
    for (const WordRule& rule : words_) of[at(rule.parent)][1] += rule.probability;
  for (std::size_t n = 2; n <= at(most); ++n)
    for (const BinaryRule& rule : binary_) {
      const auto &left = of[at(rule.left)], &right = of[at(rule.right)];
      double sum = 0;
      for (std::size_t k = 1; k < n; ++k) sum += left[k] * right[n - k];
      of[at(rule.parent)][n] += rule.probability * sum;
    }
  return of[at(start_)];
}

double Grammar::derivation_entropy() const {
  double entropy = 0;
  for (const BinaryRule& rule : binary_) entropy += expected_[at(rule.parent)] * surprise(rule.probability);
  for (const WordRule& rule : words_)
    entropy +=
        expected_[at(rule.parent)] * (surprise(rule.probability) + rule.probability * list(rule).entropy());
  return entropy;
}

double Grammar::expected_length() const {
  double length = 0;
  for (const WordRule& rule : words_) length += expected_[at(rule.parent)] * rule.probability;
  return length;
}

}  // namespace superstep::data
