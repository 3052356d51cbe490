#include "superstep/physics/language/pair_generator.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

constexpr std::uint32_t purpose_text = 1, purpose_masking = 2;
constexpr int tokens_a_sentence = 8;  // about, with its full stop
constexpr int most_in_a_paragraph = 6;
constexpr std::size_t marks = 3;  // [CLS] A [SEP] B [SEP]

std::vector<Field> fields_for(std::int64_t length, std::int64_t sequences) {
  using enum ElementType;
  return {{"input_ids", i32, {length}, "", "tokens as the model sees them, some hidden or exchanged"},
          {"attention_mask", i32, {length}, "", "which pair a token is of, from 1; 0 for padding"},
          {"token_type_ids", i32, {length}, "", "1 in second paragraphs"},
          {"position_ids", i32, {length}, "", "within the token's own pair"},
          {"first_positions", i32, {sequences}, "", "where each pair begins; 0 for pairs that are not there"},
          {"labels", i32, {length}, "", "the true token at scored positions, else -100"},
          {"next_labels", i32, {sequences}, "", "0: B follows A; 1: it does not; -100: no such pair"},
          {"tokens", i32, {length}, "", "the text itself"},
          {"optimal_nats", f32, {length}, "nat", "least expected loss at scored positions, else 0"}};
}

struct Pair {
  std::vector<std::int32_t> tokens;
  std::size_t second = 0;  // where the second paragraph begins
  int label = follows;
};

struct Block {
  std::vector<std::int32_t> tokens, mask, types, positions, firsts, next;
};

class PairGenerator final : public Generator {
 public:
  PairGenerator(const LanguageSettings& settings, int length, int sequences)
      : settings_(settings),
        length_(length),
        sequences_(sequences),
        language_(settings),
        fields_(fields_for(length, sequences)) {}

  std::string_view name() const override { return "bert-large"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const Block made = block(seed, index);
    RandomStream random(seed, index, purpose_masking);
    const HiddenWords hidden = hide_words(language_, random, made.tokens);
    put_all<std::int32_t>(out[0], hidden.input_ids);
    put_all<std::int32_t>(out[1], made.mask);
    put_all<std::int32_t>(out[2], made.types);
    put_all<std::int32_t>(out[3], made.positions);
    put_all<std::int32_t>(out[4], made.firsts);
    put_all<std::int32_t>(out[5], hidden.labels);
    put_all<std::int32_t>(out[6], made.next);
    put_all<std::int32_t>(out[7], made.tokens);
    put_all<float>(out[8], optimal_nats(language_, made.tokens, hidden.input_ids, hidden.labels));
  }

  std::map<std::string, Tensor> shared_arrays(std::uint64_t) const override {
    return vocabulary_array(language_);
  }

  nlohmann::json parameters() const override {
    nlohmann::json all = language_parameters(settings_, language_, length_);
    all["sequences"] = sequences_;
    all["most_sentences"] = most_sentences(length_);
    return all;
  }

 private:
  std::vector<std::int32_t> paragraph(RandomStream& random, int sentences) const {
    std::vector<std::int32_t> tokens;
    while (sentences > 0) {
      const std::vector<int> sentence = language_.grammar().draw(random);
      if (sentence.size() > longest_sentence) continue;
      tokens.insert(tokens.end(), sentence.begin(), sentence.end());
      tokens.push_back(token::stop);
      --sentences;
    }
    return tokens;
  }

  // What makes a pair fit or not is its length, which is seen: so nothing is told of its words.
  Pair pair(RandomStream& random, std::size_t room, bool must_fit) const {
    const auto most = static_cast<std::uint64_t>(most_sentences(length_));
    Pair made{.tokens = {}, .second = 0, .label = random.uniform() < 0.5 ? follows : does_not_follow};
    const int first = 1 + static_cast<int>(random.below(most));
    const int second = made.label == follows ? first : 1 + static_cast<int>(random.below(most));
    for (;;) {
      const auto a = paragraph(random, first), b = paragraph(random, second);
      if (must_fit && a.size() + b.size() + marks > room) continue;
      made.tokens = {token::cls};
      made.tokens.insert(made.tokens.end(), a.begin(), a.end());
      made.tokens.push_back(token::sep);
      made.second = made.tokens.size();
      made.tokens.insert(made.tokens.end(), b.begin(), b.end());
      made.tokens.push_back(token::sep);
      return made;
    }
  }

  static void append(const Pair& pair, Block& block) {
    block.firsts.push_back(static_cast<std::int32_t>(block.tokens.size()));
    block.next.push_back(pair.label);
    const auto number = static_cast<std::int32_t>(block.firsts.size());
    for (std::size_t i = 0; i < pair.tokens.size(); ++i) {
      block.tokens.push_back(pair.tokens[i]);
      block.mask.push_back(number);
      block.types.push_back(i < pair.second ? 0 : 1);
      block.positions.push_back(static_cast<std::int32_t>(i));
    }
  }

  // Pair after pair, until there are as many as may be, or the next does not fit.
  Block block(std::uint64_t seed, std::uint64_t index) const {
    RandomStream random(seed, index, purpose_text);
    Block made;
    const auto length = static_cast<std::size_t>(length_);
    while (made.firsts.size() < static_cast<std::size_t>(sequences_)) {
      const std::size_t room = length - made.tokens.size();
      const Pair next = pair(random, room, made.tokens.empty());
      if (next.tokens.size() > room) break;
      append(next, made);
    }
    for (auto* each : {&made.tokens, &made.mask, &made.types, &made.positions}) each->resize(length, 0);
    made.firsts.resize(static_cast<std::size_t>(sequences_), 0);
    made.next.resize(static_cast<std::size_t>(sequences_), not_scored);
    return made;
  }

  LanguageSettings settings_;
  int length_, sequences_;
  Language language_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make(const Options& options) {
  return std::make_unique<PairGenerator>(language_of_options(options),
                                         static_cast<int>(options.integer("length", 16, 4096)),
                                         static_cast<int>(options.integer("sequences", 1, 64)));
}

}  // namespace

int most_sentences(int length) {
  return std::clamp((length - static_cast<int>(marks)) / (2 * tokens_a_sentence), 1, most_in_a_paragraph);
}

GeneratorEntry bert_large_generator() {
  std::vector<OptionSpec> options = language_options("128", "30522");
  options.push_back({"sequences", "1", "pairs that are packed into a block, at most"});
  return {"bert-large", "pairs of paragraphs of a grammar, masked, with the least possible loss", options,
          make};
}

}  // namespace superstep::data
