#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "superstep/base/error.h"
#include "superstep/physics/language/grammar_chart.h"
#include "superstep/physics/language/language.h"
#include "tests/expect_error.h"

namespace superstep::data {
namespace {

// A -> A A (p) | word 0 (1-p): the number of derivations of n words is Catalan's.
Grammar branching(double p) { return {{"A"}, {{0, 0, 0, p}}, {{0, 0, 1 - p}}, {WordList(0, 1, 1, 0)}, 0}; }

TEST(WordList, FollowsZipf) {
  const WordList list(10, 1000, 1.2, 0);
  EXPECT_NEAR(list.probability(10) / list.probability(13), std::pow(4, 1.2), 1e-12);
  EXPECT_EQ(list.probability(9), 0);
  EXPECT_EQ(list.probability(1010), 0);
  EXPECT_NEAR(WordList(0, 8, 0, 0).entropy(), std::log(8), 1e-12);
  RandomStream random(1);
  int first = 0;
  for (int i = 0; i < 20000; ++i) first += list.draw(random) == 10;
  EXPECT_NEAR(first / 20000.0, list.probability(10), 0.012);
}

TEST(Grammar, InsideSumsOverDerivations) {
  const double p = 0.3;
  const Grammar grammar = branching(p);
  const int catalan[] = {1, 1, 2, 5, 14, 42};
  for (int n = 1; n <= 6; ++n) {
    const std::vector<int> sentence(static_cast<std::size_t>(n), 0);
    const double one = (n - 1) * std::log(p) + n * std::log(1 - p);
    EXPECT_NEAR(log_probability(grammar, sentence), one + std::log(catalan[n - 1]), 1e-12);
    EXPECT_NEAR(log_probability_of_best_derivation(grammar, sentence), one, 1e-12);
  }
  EXPECT_EQ(log_probability(grammar, std::vector<int>{0, 1}), -INFINITY);
  EXPECT_EQ(log_probability(grammar, {}), -INFINITY);
}

TEST(Grammar, EntropyAndLengthHaveTheirClosedForms) {
  // Of A -> A A | w: 1/(1-2p) symbols, (1-p)/(1-2p) of them words.
  for (const double p : {0.0, 0.1, 0.3, 0.45}) {
    const Grammar grammar = branching(p);
    const double choice = p > 0 ? -p * std::log(p) - (1 - p) * std::log(1 - p) : 0;
    EXPECT_NEAR(grammar.derivation_entropy(), choice / (1 - 2 * p), 1e-9);
    EXPECT_NEAR(grammar.expected_length(), (1 - p) / (1 - 2 * p), 1e-9);
  }
  expect_error(ErrorCode::invalid_argument, {"do not end"}, [] { branching(0.6); });
  expect_error(ErrorCode::invalid_argument, {"symbol 'A'", "total probability of 0.9"}, [] {
    Grammar({"A"}, {}, {{0, 0, 0.9}}, {WordList(0, 1, 1, 0)}, 0);
  });
}

TEST(Language, EverySentenceHasOneDerivation) {
  const Language language(LanguageSettings{2000, 1.07, 2.7, 0.25});
  RandomStream random(3);
  std::size_t longest = 0;
  for (int i = 0; i < 300; ++i) {
    const std::vector<int> sentence = language.grammar().draw(random);
    if (sentence.size() > 60) continue;
    longest = std::max(longest, sentence.size());
    const double all = log_probability(language.grammar(), sentence);
    EXPECT_NEAR(all, log_probability_of_best_derivation(language.grammar(), sentence), 1e-9);
    EXPECT_TRUE(std::isfinite(all));
  }
  EXPECT_GT(longest, 20u);
}

// So that the entropy of derivations is the entropy of sentences, which the mean of -log p approaches.
TEST(Language, MeanSurpriseApproachesTheEntropy) {
  const Language language(LanguageSettings{});
  const Grammar& grammar = language.grammar();
  RandomStream random(4);
  const int sentences = 4000;
  double sum = 0, squares = 0, words = 0;
  for (int i = 0; i < sentences; ++i) {
    const std::vector<int> sentence = grammar.draw(random);
    const double nats = -log_probability(grammar, sentence);
    sum += nats, squares += nats * nats, words += static_cast<double>(sentence.size());
  }
  const double mean = sum / sentences, error = std::sqrt((squares / sentences - mean * mean) / sentences);
  std::printf(
      "entropy %.3f nats per sentence, found %.3f +- %.3f; %.3f words, found %.3f; %.3f nats per word\n",
      grammar.derivation_entropy(), mean, error, grammar.expected_length(), words / sentences,
      grammar.derivation_entropy() / grammar.expected_length());
  EXPECT_NEAR(mean, grammar.derivation_entropy(), 4 * error);
  EXPECT_LT(error, 0.02 * mean);
  EXPECT_NEAR(words / sentences, grammar.expected_length(), 0.5);
}

TEST(Language, WordsAreDistinctAndNumbersAgree) {
  const Language language(LanguageSettings{});
  EXPECT_EQ(language.vocabulary(), 30522);
  std::set<std::string> seen;
  for (int i = 0; i < language.vocabulary(); ++i)
    EXPECT_TRUE(seen.insert(language.surface(i)).second) << language.surface(i);
  // Exchanging the verb for one of the other number makes a sentence impossible.
  const Language small(LanguageSettings{64, 1, 0, 0.1});
  std::map<std::string, int> word;
  for (int i = 0; i < small.vocabulary(); ++i) word[small.surface(i)] = i;
  const auto first_with = [&](const std::string& ending) {
    for (const auto& [surface, number] : word)
      if (number >= token::first_word && surface.size() > ending.size() && surface.ends_with(ending) &&
          std::string_view("aeiou").find(surface[surface.size() - ending.size() - 1]) !=
              std::string_view::npos)
        return number;
    return -1;
  };
  const int noun = first_with("n"), sings = first_with("ts"), sing = first_with("t"), sees = first_with("rs"),
            the = word["the"];
  EXPECT_TRUE(std::isfinite(log_probability(small.grammar(), std::vector{the, noun, sings})));
  EXPECT_FALSE(std::isfinite(log_probability(small.grammar(), std::vector{the, noun, sing})));
  const int that = word["that"], plural = first_with("ns"), these = word["these"];
  EXPECT_TRUE(std::isfinite(
      log_probability(small.grammar(), std::vector{the, noun, that, sees, these, plural, sings})));
  EXPECT_FALSE(std::isfinite(
      log_probability(small.grammar(), std::vector{the, noun, that, sees, these, plural, sing})));
}

TEST(Language, RefusesWhatCannotBe) {
  expect_error(ErrorCode::invalid_argument, {"a vocabulary of 10"}, [] {
    Language(LanguageSettings{10, 1, 0, 0.1});
  });
  expect_error(ErrorCode::invalid_argument, {"a recursion of 0.5"}, [] {
    Language(LanguageSettings{1000, 1, 0, 0.5});
  });
}

// By brute force: every sentence of the same length of a small grammar, weighed by its probability.
TEST(MaskedWords, PosteriorIsTheOneOfAllSentences) {
  // S -> A B (.7) | B A (.3), A -> words 0..2, B -> words 3..4 or (C D), C -> 0..2, D -> 3..4.
  const Grammar grammar({"S", "A", "B", "C", "D"}, {{0, 1, 2, 0.7}, {0, 2, 1, 0.3}, {2, 3, 4, 0.4}},
                        {{1, 0, 1}, {2, 1, 0.6}, {3, 0, 1}, {4, 1, 1}},
                        {WordList(0, 3, 1, 0), WordList(3, 2, 1, 0)}, 0);
  const MaskingChannel channel{0.3, 0.6, 0.3, 0, 5};
  const std::vector<int> truth = {1, 0, 4}, observed = {hidden_word, 0, 3};
  const std::vector<bool> scored = {true, true, true};
  const auto sight = [&](int seen, int word, bool chosen) {
    const double kept = 1 - channel.masked - channel.garbled;
    const double known =
        seen == hidden_word ? channel.masked : (seen == word ? kept : 0) + channel.garbled / channel.words;
    return chosen ? known : channel.chosen * known + (seen == word ? 1 - channel.chosen : 0);
  };
  const auto made = masked_word_nats(grammar, channel, truth, observed, scored);
  for (std::size_t i = 0; i < 3; ++i) {
    double right = 0, all = 0;
    for (int code = 0; code < 125; ++code) {
      const std::vector<int> sentence = {code % 5, code / 5 % 5, code / 25};
      double weight = std::exp(log_probability(grammar, sentence));
      for (std::size_t k = 0; k < 3; ++k) weight *= sight(observed[k], sentence[k], k == i);
      all += weight;
      if (sentence[i] == truth[i]) right += weight;
    }
    EXPECT_NEAR(made[i], -std::log(right / all), 1e-12) << i;
  }
}

}  // namespace
}  // namespace superstep::data
