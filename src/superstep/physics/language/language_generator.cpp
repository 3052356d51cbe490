#include "superstep/physics/language/language_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/random.h"
#include "superstep/file/streamed_file.h"
#include "superstep/physics/language/text_generator.h"
#include "superstep/physics/ordered_samples.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

constexpr std::uint32_t purpose_text = 1, purpose_masking = 2;
constexpr int longest_surface = 16;

struct Block {
  std::vector<std::int32_t> tokens, input_ids, attention, labels;
  std::vector<float> nats;
  double log_probability = 0;
};

std::vector<Field> fields_for(std::int64_t length) {
  return {
      {"input_ids",
       ElementType::i32,
       {length},
       "",
       "tokens as the model sees them, some hidden or exchanged"},
      {"attention_mask", ElementType::i32, {length}, "", "1 for tokens, 0 for padding"},
      {"labels", ElementType::i32, {length}, "", "the true token at scored positions, else -100"},
      {"tokens", ElementType::i32, {length}, "", "the text itself"},
      {"optimal_nats", ElementType::f32, {length}, "nat", "least expected loss at scored positions, else 0"},
      {"log_probability", ElementType::f64, {}, "nat", "log of the probability of the block's sentences"}};
}

class LanguageGenerator final : public Generator {
 public:
  LanguageGenerator(std::string name, const LanguageSettings& settings, int length)
      : name_(std::move(name)),
        settings_(settings),
        length_(length),
        language_(settings),
        fields_(fields_for(length)) {}

  std::string_view name() const override { return name_; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const Block made = block(seed, index);
    put_all<std::int32_t>(out[0], made.input_ids);
    put_all<std::int32_t>(out[1], made.attention);
    put_all<std::int32_t>(out[2], made.labels);
    put_all<std::int32_t>(out[3], made.tokens);
    put_all<float>(out[4], made.nats);
    put(out[5], made.log_probability);
  }

  std::map<std::string, Tensor> shared_arrays(std::uint64_t) const override {
    return vocabulary_array(language_);
  }

  nlohmann::json parameters() const override { return language_parameters(settings_, language_, length_); }

  void write(const WriteRequest& request) const override {
    if (request.path.extension() != ".txt") return Generator::write(request);
    StreamedFile vocabulary(std::filesystem::path(request.path).replace_extension(".vocab.txt"));
    for (int i = 0; i < language_.vocabulary(); ++i) vocabulary.write(language_.surface(i) + "\n");
    StreamedFile file(request.path);
    for_samples_in_order(
        request, [&](std::uint64_t index) { return text_of(block(request.seed, index)); },
        [&](const std::string& text) { file.write(text); });
    vocabulary.close();
    file.close();
  }

 private:
  Block block(std::uint64_t seed, std::uint64_t index) const {
    Block made;
    RandomStream text(seed, index, purpose_text);
    made.tokens = draw_block(language_, length_, text, made.log_probability);
    const auto used = static_cast<std::ptrdiff_t>(made.tokens.size());
    made.tokens.resize(static_cast<std::size_t>(length_), token::pad);
    made.attention.assign(made.tokens.size(), 0);
    std::fill_n(made.attention.begin(), used, 1);
    RandomStream random(seed, index, purpose_masking);
    HiddenWords hidden = hide_words(language_, random, made.tokens);
    made.input_ids = std::move(hidden.input_ids), made.labels = std::move(hidden.labels);
    made.nats = optimal_nats(language_, made.tokens, made.input_ids, made.labels);
    return made;
  }

  std::string text_of(const Block& made) const {
    std::string text;
    bool new_line = true;
    for (const std::int32_t each : made.tokens) {
      if (each < token::stop) continue;
      if (!new_line) text += ' ';
      text += language_.surface(each);
      new_line = each == token::stop;
      if (new_line) text += '\n';
    }
    return text;
  }

  std::string name_;
  LanguageSettings settings_;
  int length_;
  Language language_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make_named(const char* name, const Options& options) {
  return std::make_unique<LanguageGenerator>(name, language_of_options(options),
                                             static_cast<int>(options.integer("length", 16, 4096)));
}

std::unique_ptr<Generator> make_bert_small(const Options& options) {
  return make_named("bert-small", options);
}
std::unique_ptr<Generator> make_distilbert(const Options& options) {
  return make_named("distilbert", options);
}

}  // namespace

std::vector<OptionSpec> language_options(const char* length, const char* vocabulary) {
  return {
      {"length", length, "tokens of a block, with [CLS] and [SEP]"},
      {"vocabulary", vocabulary, "tokens of the vocabulary"},
      {"zipf-exponent", "1.07", "exponent of the word frequencies"},
      {"zipf-shift", "2.7", "shift of the rank in the word frequencies"},
      {"recursion", "0.15", "how likely a noun takes a phrase or clause of its own (below 0.3)"},
  };
}

LanguageSettings language_of_options(const Options& options) {
  return {static_cast<int>(options.integer("vocabulary", 64, 1'000'000)),
          options.number("zipf-exponent", 0, 5), options.number("zipf-shift", 0, 1000),
          options.number("recursion", 0, 0.299)};
}

nlohmann::json language_parameters(const LanguageSettings& settings, const Language& language, int length) {
  const Grammar& grammar = language.grammar();
  return {{"vocabulary", settings.vocabulary},
          {"zipf_exponent", settings.zipf_exponent},
          {"zipf_shift", settings.zipf_shift},
          {"recursion", settings.recursion},
          {"length", length},
          {"entropy_nats_per_sentence", grammar.derivation_entropy()},
          {"words_per_sentence", grammar.expected_length()}};
}

std::map<std::string, Tensor> vocabulary_array(const Language& language) {
  Tensor vocabulary(ElementType::u8, {language.vocabulary(), longest_surface});
  for (int i = 0; i < language.vocabulary(); ++i)
    std::ranges::copy(language.surface(i), vocabulary.as<std::uint8_t>().begin() + i * longest_surface);
  return {{"vocabulary", vocabulary}};
}

HiddenWords hide_words(const Language& language, RandomStream& random, std::span<const std::int32_t> tokens) {
  const MaskingChannel channel = masking_of(language);
  HiddenWords hidden{{tokens.begin(), tokens.end()}, std::vector<std::int32_t>(tokens.size(), not_scored)};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < token::first_word || random.uniform() >= channel.chosen) continue;
    hidden.labels[i] = tokens[i];
    const double how = random.uniform();
    if (how < channel.masked)
      hidden.input_ids[i] = token::mask;
    else if (how < channel.masked + channel.garbled)
      hidden.input_ids[i] = channel.first_word + static_cast<std::int32_t>(
                                                     random.below(static_cast<std::uint64_t>(channel.words)));
  }
  return hidden;
}

MaskingChannel masking_of(const Language& language) {
  MaskingChannel channel;
  channel.first_word = token::first_word;
  channel.words = language.vocabulary() - token::first_word;
  return channel;
}

LanguageSettings language_settings(const nlohmann::json& parameters) {
  try {
    return {parameters.at("vocabulary").get<int>(), parameters.at("zipf_exponent").get<double>(),
            parameters.at("zipf_shift").get<double>(), parameters.at("recursion").get<double>()};
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::bad_file, "the attribute 'parameters' does not describe a language");
  }
}

std::vector<float> optimal_nats(const Language& language, std::span<const std::int32_t> tokens,
                                std::span<const std::int32_t> input_ids,
                                std::span<const std::int32_t> labels) {
  std::vector<float> nats(tokens.size(), 0.0f);
  const MaskingChannel channel = masking_of(language);
  for (std::size_t first = 0; first < tokens.size();) {
    std::size_t last = first;
    while (last < tokens.size() && tokens[last] >= token::first_word) ++last;
    if (last - first > longest_sentence)
      throw Error(ErrorCode::bad_file, fmt::format("a sentence of {} words", last - first), {},
                  fmt::format("sentences of this language have at most {}", longest_sentence));
    std::vector<int> truth(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                           tokens.begin() + static_cast<std::ptrdiff_t>(last)),
        observed;
    std::vector<bool> scored;
    for (std::size_t i = first; i < last; ++i) {
      observed.push_back(input_ids[i] == token::mask ? hidden_word : input_ids[i]);
      scored.push_back(labels[i] != not_scored);
    }
    if (std::ranges::find(scored, true) != scored.end()) {
      const std::vector<double> exact =
          masked_word_nats(language.grammar(), channel, truth, observed, scored);
      for (std::size_t i = 0; i < exact.size(); ++i) nats[first + i] = static_cast<float>(exact[i]);
    }
    first = last + 1;
  }
  return nats;
}

GeneratorEntry bert_small_generator() {
  return {"bert-small", "text of a grammar with known entropy, masked, with the least possible loss",
          language_options("64", "1024"), make_bert_small};
}

GeneratorEntry distilbert_generator() {
  return {"distilbert", "text of a grammar with known entropy, masked, with the least possible loss",
          language_options("128", "30522"), make_distilbert};
}

}  // namespace superstep::data
