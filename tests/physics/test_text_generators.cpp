// Text for pre-training, questions and next tokens: what is known of it exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/physics/language/pair_generator.h"
#include "superstep/physics/language/question_generator.h"
#include "superstep/physics/language/text_generator.h"
#include "tests/physics/workload_generators.h"

namespace superstep::data {
namespace {

TEST(TextGenerators, SamplesDoNotDependOnThreads) {
  for (const char* name : {"bert-large", "bert-base-squad", "llama"})
    expect_same_bits_on_any_threads(name, 12);
}

// Lengths of sentences, counted and computed.
TEST(Grammars, LengthProbabilitiesAreThoseOfDrawnSentences) {
  const Language language({.vocabulary = 200});
  const std::vector<double> computed = language.grammar().length_probabilities(200);
  double sum = 0, mean = 0;
  for (std::size_t n = 0; n < computed.size(); ++n)
    sum += computed[n], mean += static_cast<double>(n) * computed[n];
  EXPECT_NEAR(sum, 1, 1e-3);
  EXPECT_NEAR(mean, language.grammar().expected_length(), 0.1);
  RandomStream random(3);
  double two = 0, five = 0;
  constexpr int draws = 20000;
  for (int i = 0; i < draws; ++i) {
    const std::size_t words = language.grammar().draw(random).size();
    two += words == 2, five += words == 5;
  }
  EXPECT_NEAR(two / draws, computed[2], 4 * std::sqrt(computed[2] / draws));
  EXPECT_NEAR(five / draws, computed[5], 4 * std::sqrt(computed[5] / draws));
}

// Pairs that follow have as many sentences each; half follow.
TEST(PairGenerator, FollowingParagraphsHaveAsManySentences) {
  ThreadPool pool(2);
  const auto generator = make_generator("bert-large", {"vocabulary=200", "length=128", "sequences=3"});
  const auto made = generate_in_memory(*generator, 1, 0, 200, pool);
  const auto at = [&](const char* name, std::int64_t i) {
    return static_cast<int>(field(*generator, made, name).at(i));
  };
  int following = 0, pairs = 0, unequal = 0;
  for (std::int64_t block = 0; block < 200; ++block)
    for (std::int64_t pair = 0; pair < 3; ++pair) {
      const int label = at("next_labels", 3 * block + pair);
      if (label == not_scored) continue;
      EXPECT_EQ(at("tokens", 128 * block + at("first_positions", 3 * block + pair)), token::cls);
      int counts[2] = {0, 0};
      for (std::int64_t i = 128 * block; i < 128 * (block + 1); ++i)
        if (at("attention_mask", i) == pair + 1 && at("tokens", i) == token::stop)
          ++counts[at("token_type_ids", i)];
      ++pairs, following += label == follows;
      if (label == follows)
        EXPECT_EQ(counts[0], counts[1]);
      else
        unequal += counts[0] != counts[1];
    }
  EXPECT_GT(pairs, 300);  // more than one a block
  EXPECT_NEAR(static_cast<double>(following) / pairs, 0.5, 0.1);
  EXPECT_GT(unequal, 0.6 * (pairs - following));
}

// Bayes' rule by hand: the second statement has the question's words, the first differs in one of two.
TEST(QuestionGenerator, KnowsWhatIsAskedFor) {
  const std::vector<std::int32_t> tokens = {10, 20,          21, token::stop, 11,         20,
                                            22, token::stop, 12, 20,          token::stop};
  const Statement statements[] = {{0, 0, 2}, {4, 4, 6}, {8, 8, 9}};
  const std::int32_t question[] = {20, 22};
  const auto likely = asked_for(tokens, statements, question, 0.1, 100);
  const double right = 0.901, wrong = 0.001;
  EXPECT_NEAR(likely[0], wrong / (right + wrong), 1e-12);
  EXPECT_NEAR(likely[1], right / (right + wrong), 1e-12);
  EXPECT_EQ(likely[2], 0);
}

TEST(QuestionGenerator, AnswersAreSubjectsOfTheText) {
  ThreadPool pool(2);
  const auto generator = make_generator("bert-base-squad", {"vocabulary=200", "length=64"});
  const auto made = generate_in_memory(*generator, 1, 0, 200, pool);
  const auto at = [&](const char* name, std::int64_t i) {
    return static_cast<int>(field(*generator, made, name).at(i));
  };
  double best = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    const int start = at("start", i), end = at("end", i);
    ASSERT_LE(start, end);
    for (int k = start; k <= end; ++k) EXPECT_EQ(at("token_type_ids", 64 * i + k), 1);
    const int before = at("input_ids", 64 * i + start - 1);
    EXPECT_TRUE(before == token::stop || before == token::sep) << before;
    best += field(*generator, made, "optimal_exact").at(i);
  }
  EXPECT_GT(best / 200, 0.9);
  EXPECT_LT(best / 200, 1);
}

TEST(QuestionGenerator, BlocksOfManyLengthsWhereTheyAreAskedFor) {
  ThreadPool pool(1);
  const auto used = [&](std::vector<std::string> options) {
    const auto generator = make_generator("bert-base-squad", options);
    const auto made = generate_in_memory(*generator, 1, 0, 100, pool);
    std::vector<int> lengths;
    for (std::int64_t i = 0; i < 100; ++i) {
      int length = 0;
      for (std::int64_t k = 0; k < 64; ++k)
        length += static_cast<int>(field(*generator, made, "attention_mask").at(64 * i + k));
      lengths.push_back(length);
    }
    return lengths;
  };
  const auto full = used({"vocabulary=200", "length=64"}),
             many = used({"vocabulary=200", "length=64", "shortest=24"});
  EXPECT_LT(std::ranges::min(many), 24);
  EXPECT_GT(std::ranges::max(many), 48);
  EXPECT_LT(std::accumulate(many.begin(), many.end(), 0),
            0.85 * std::accumulate(full.begin(), full.end(), 0));
}

// What a block costs whoever knows the grammar is finite, and infinite for another text.
TEST(BlockEntropy, IsOfWholeBlocksAlone) {
  const Language language({.vocabulary = 200});
  const BlockEntropy entropy(language, 32);
  RandomStream random(5);
  double log_p = 0;
  std::vector<std::int32_t> block = draw_block(language, 32, random, log_p);
  EXPECT_TRUE(std::isfinite(entropy.nats(block)));
  EXPECT_NEAR(entropy.nats(block), -log_p, 5);  // where the block ends costs little beside its words
  block.pop_back();
  EXPECT_TRUE(std::isinf(entropy.nats(block)));
}

}  // namespace
}  // namespace superstep::data
