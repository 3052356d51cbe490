#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/language/language_generator.h"
#include "tests/expect_error.h"
#include "tests/physics/workload_generators.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

TEST(LanguageGenerator, SamplesDoNotDependOnThreads) { expect_same_bits_on_any_threads("distilbert", 12); }

TEST(LanguageGenerator, HidesWordsInTheProportionsOfBert) {
  ThreadPool pool(2);
  const auto generator = make_generator("distilbert", {"vocabulary=500"});
  const std::int64_t blocks = 300, length = 128;
  const auto made = generate_in_memory(*generator, 1, 0, blocks, pool);
  const auto at = [&](const char* name, std::int64_t i) {
    return static_cast<int>(field(*generator, made, name).at(i));
  };
  double words = 0, chosen = 0, masked = 0, kept = 0;
  for (std::int64_t i = 0; i < blocks * length; ++i) {
    const int word = at("tokens", i), seen = at("input_ids", i), label = at("labels", i);
    EXPECT_EQ(at("attention_mask", i), word != token::pad);
    words += word >= token::first_word;
    if (label == not_scored) {
      ASSERT_EQ(seen, word);
      continue;
    }
    ASSERT_EQ(label, word);
    ASSERT_GE(word, token::first_word);
    ++chosen;
    masked += seen == token::mask;
    kept += seen == word;
  }
  EXPECT_NEAR(chosen / words, 0.15, 0.008);
  EXPECT_NEAR(masked / chosen, 0.8, 0.02);
  EXPECT_NEAR(kept / chosen, 0.1, 0.02);
  for (std::int64_t b = 0; b < blocks; ++b) EXPECT_EQ(at("tokens", b * length), token::cls);
}

// Knowing the sentence around a word must help, and cannot tell the word for certain.
TEST(LanguageGenerator, OptimalLossIsBelowTheEntropyOfWords) {
  ThreadPool pool(2);
  const auto generator = make_generator("distilbert", {"vocabulary=2000"});
  const auto made = generate_in_memory(*generator, 2, 0, 200, pool);
  const Tensor &nats = field(*generator, made, "optimal_nats"), &labels = field(*generator, made, "labels"),
               &tokens = field(*generator, made, "tokens");
  double loss = 0, scored = 0, words = 0, unigram = 0;
  std::map<int, double> counts;
  for (std::int64_t i = 0; i < tokens.element_count(); ++i)
    if (tokens.at(i) >= token::first_word) ++words, ++counts[static_cast<int>(tokens.at(i))];
  for (const auto& [word, count] : counts) unigram -= count / words * std::log(count / words);
  for (std::int64_t i = 0; i < nats.element_count(); ++i) {
    if (labels.at(i) == not_scored) {
      ASSERT_EQ(nats.at(i), 0);
      continue;
    }
    ASSERT_TRUE(std::isfinite(nats.at(i)));
    ASSERT_GE(nats.at(i), 0);
    loss += nats.at(i), ++scored;
  }
  std::printf("least loss %.3f nats, entropy of single words %.3f\n", loss / scored, unigram);
  EXPECT_LT(loss / scored, 0.8 * unigram);
  EXPECT_GT(loss / scored, 0.3 * unigram);
}

TEST(LanguageGenerator, LogProbabilityIsThatOfItsSentences) {
  ThreadPool pool(1);
  const auto generator = make_generator("distilbert", {"vocabulary=300", "length=40"});
  const Language language(language_settings(generator->parameters()));
  const auto made = generate_in_memory(*generator, 3, 0, 5, pool);
  for (std::int64_t b = 0; b < 5; ++b) {
    double sum = 0;
    std::vector<int> sentence;
    for (std::int64_t i = 0; i < 40; ++i) {
      const int each = static_cast<int>(field(*generator, made, "tokens").at(b * 40 + i));
      if (each >= token::first_word) sentence.push_back(each);
      if (each == token::stop) sum += log_probability(language.grammar(), sentence), sentence.clear();
    }
    EXPECT_NEAR(field(*generator, made, "log_probability").at(b), sum, 1e-9);
  }
}

TEST(LanguageGenerator, WritesTextAndVocabulary) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = make_generator("distilbert", {"vocabulary=300"});
  generator->write({folder / "text.txt", 4, 3, &pool});
  generator->write({folder / "text.h5", 4, 3, &pool});
  std::ifstream words(folder / "text.vocab.txt"), text(folder / "text.txt");
  std::map<std::string, int> number;
  for (std::string word; std::getline(words, word);) number.emplace(word, static_cast<int>(number.size()));
  EXPECT_EQ(number.size(), 300u);
  const Tensor tokens = Hdf5File(folder / "text.h5").read("tokens", ElementType::i32);
  std::vector<int> expected, found;
  for (std::int64_t i = 0; i < tokens.element_count(); ++i)
    if (tokens.at(i) >= token::stop) expected.push_back(static_cast<int>(tokens.at(i)));
  for (std::string word; text >> word;) found.push_back(number.at(word));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(folder.file_count(), 3);
}

TEST(LanguageGenerator, RefusesForeignParameters) {
  expect_error(ErrorCode::bad_file, {"does not describe a language"}, [] {
    language_settings(nlohmann::json{{"vocabulary", "many"}});
  });
}

}  // namespace
}  // namespace superstep::data
