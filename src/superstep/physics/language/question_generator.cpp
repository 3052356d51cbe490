#include "superstep/physics/language/question_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

constexpr std::uint32_t purpose_text = 1, purpose_question = 2, purpose_length = 3;
constexpr int question_share = 4;  // a question takes a quarter of the block at most

std::vector<Field> fields_for(std::int64_t length) {
  using enum ElementType;
  return {{"input_ids", i32, {length}, "", "[CLS] question [SEP] text [SEP]; a question begins with [UNK]"},
          {"attention_mask", i32, {length}, "", "1 for tokens, 0 for padding"},
          {"token_type_ids", i32, {length}, "", "1 in the text"},
          {"start", i32, {}, "", "the first token of the answer"},
          {"end", i32, {}, "", "the last token of the answer"},
          {"optimal_exact", f32, {}, "", "how likely the best answer is the right one, word by word"}};
}

struct Asked {
  std::vector<std::int32_t> tokens, mask, types;
  std::int32_t start = 0, end = 0;
  float optimal = 1;
};

class QuestionGenerator final : public Generator {
 public:
  QuestionGenerator(const LanguageSettings& settings, int length, int shortest, double exchanged)
      : settings_(settings),
        length_(length),
        shortest_(shortest),
        exchanged_(exchanged),
        language_(settings),
        fields_(fields_for(length)) {}

  std::string_view name() const override { return "bert-base-squad"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const Asked made = asked(seed, index);
    put_all<std::int32_t>(out[0], made.tokens);
    put_all<std::int32_t>(out[1], made.mask);
    put_all<std::int32_t>(out[2], made.types);
    put(out[3], made.start);
    put(out[4], made.end);
    put(out[5], made.optimal);
  }

  std::map<std::string, Tensor> shared_arrays(std::uint64_t) const override {
    return vocabulary_array(language_);
  }

  nlohmann::json parameters() const override {
    nlohmann::json all = language_parameters(settings_, language_, length_);
    all["exchanged"] = exchanged_;
    if (shortest_ < length_) all["shortest"] = shortest_;
    return all;
  }

 private:
  // What is told, and so a question without its first token, has so many words at most, of a block of
  // `length` tokens.
  static int longest_told(int length) { return std::max(2, length / question_share - 1); }

  // A text that leaves room for the longest question; statements whose telling is longer are not asked for.
  struct Text {
    std::vector<std::int32_t> tokens;
    std::vector<Statement> statements;
  };
  Text text(RandomStream& random, int length) const {
    const int told = longest_told(length);
    const auto room = static_cast<std::size_t>(length - told - 4);  // [CLS] [UNK] [SEP] [SEP]
    Text made;
    for (;;) {
      const Grammar::Halves sentence = language_.grammar().draw_halves(random);
      const std::size_t size = sentence.left.size() + sentence.right.size() + 1;
      if (made.tokens.size() + size > room) {
        if (!made.statements.empty()) return made;
        made = {};  // nothing to ask for yet: another text
        continue;
      }
      const int first = static_cast<int>(made.tokens.size()),
                verb = first + static_cast<int>(sentence.left.size());
      if (static_cast<int>(sentence.right.size()) <= told)
        made.statements.push_back({first, verb - 1, verb + static_cast<int>(sentence.right.size()) - 1});
      made.tokens.insert(made.tokens.end(), sentence.left.begin(), sentence.left.end());
      made.tokens.insert(made.tokens.end(), sentence.right.begin(), sentence.right.end());
      made.tokens.push_back(token::stop);
    }
  }

  std::vector<std::int32_t> question_about(const Text& text, const Statement& statement,
                                           RandomStream& random) const {
    std::vector<std::int32_t> words(text.tokens.begin() + statement.subject_last + 1,
                                    text.tokens.begin() + statement.last + 1);
    for (std::int32_t& word : words)
      if (random.uniform() < exchanged_)
        word = token::first_word +
               static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(any_word())));
    return words;
  }

  int any_word() const { return language_.vocabulary() - token::first_word; }

  // Answers of the same words are the same answer.
  static float best_share(const Text& text, std::span<const double> likely) {
    std::map<std::vector<std::int32_t>, double> shares;
    for (std::size_t i = 0; i < likely.size(); ++i) {
      const Statement& each = text.statements[i];
      shares[{text.tokens.begin() + each.subject_first, text.tokens.begin() + each.subject_last + 1}] +=
          likely[i];
    }
    double best = 0;
    for (const auto& [answer, share] : shares) best = std::max(best, share);
    return static_cast<float>(best);
  }

  Asked asked(std::uint64_t seed, std::uint64_t index) const {
    RandomStream words(seed, index, purpose_text), random(seed, index, purpose_question);
    RandomStream lengths(seed, index, purpose_length);
    const auto more = static_cast<std::uint64_t>(length_ - shortest_ + 1);
    const Text made = text(words, shortest_ + static_cast<int>(lengths.below(more)));
    const Statement& chosen = made.statements[random.below(made.statements.size())];
    const std::vector<std::int32_t> question = question_about(made, chosen, random);
    Asked asked;
    asked.optimal =
        best_share(made, asked_for(made.tokens, made.statements, question, exchanged_, any_word()));
    asked.tokens = {token::cls, token::unknown};
    asked.tokens.insert(asked.tokens.end(), question.begin(), question.end());
    asked.tokens.push_back(token::sep);
    const std::size_t begin = asked.tokens.size();
    asked.types.assign(begin, 0);
    asked.tokens.insert(asked.tokens.end(), made.tokens.begin(), made.tokens.end());
    asked.tokens.push_back(token::sep);
    asked.types.resize(asked.tokens.size(), 1);
    asked.mask.assign(asked.tokens.size(), 1);
    asked.start = static_cast<std::int32_t>(begin) + chosen.subject_first;
    asked.end = static_cast<std::int32_t>(begin) + chosen.subject_last;
    for (auto* each : {&asked.tokens, &asked.mask, &asked.types})
      each->resize(static_cast<std::size_t>(length_), 0);
    return asked;
  }

  LanguageSettings settings_;
  int length_, shortest_;  // tokens of a block; of the shortest text with its question
  double exchanged_;
  Language language_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make(const Options& options) {
  constexpr int least = 24;
  const int length = static_cast<int>(options.integer("length", least, 4096)),
            shortest = static_cast<int>(options.integer("shortest", 0, length));
  if (shortest > 0 && shortest < least)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} tokens are too few for a question", shortest),
                "option shortest", fmt::format("take {} at least, or 0 for full blocks", least));
  return std::make_unique<QuestionGenerator>(language_of_options(options), length,
                                             shortest > 0 ? shortest : length,
                                             options.number("exchanged", 0, 0.9));
}

}  // namespace

std::vector<double> asked_for(std::span<const std::int32_t> tokens, std::span<const Statement> statements,
                              std::span<const std::int32_t> question, double exchanged, int words) {
  std::vector<double> likely;
  double sum = 0;
  for (const Statement& each : statements) {
    const auto told = tokens.subspan(static_cast<std::size_t>(each.subject_last + 1),
                                     static_cast<std::size_t>(each.last - each.subject_last));
    double probability = told.size() == question.size() ? 1 : 0;
    for (std::size_t i = 0; i < told.size() && probability > 0; ++i)
      probability *= exchanged / words + (told[i] == question[i] ? 1 - exchanged : 0);
    likely.push_back(probability);
    sum += probability;
  }
  for (double& each : likely) each /= sum > 0 ? sum : 1;
  return likely;
}

GeneratorEntry bert_base_squad_generator() {
  std::vector<OptionSpec> options = language_options("384", "30522");
  options.push_back({"exchanged", "0.1", "share of a question's words that are exchanged for any others"});
  options.push_back({"shortest", "0", "tokens of the shortest block, padding behind it; 0: all are full"});
  return {"bert-base-squad", "questions about text of a grammar, with the best answer's chance", options,
          make};
}

}  // namespace superstep::data
