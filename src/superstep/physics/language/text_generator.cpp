#include "superstep/physics/language/text_generator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

constexpr std::uint32_t purpose_text = 1;
constexpr std::size_t ends = 2;  // a sentence's full stop, and the block's [SEP]

class TextGenerator final : public Generator {
 public:
  TextGenerator(std::string name, const LanguageSettings& settings, int length)
      : name_(std::move(name)),
        settings_(settings),
        length_(length),
        language_(settings),
        entropy_(language_, length),
        fields_{{"tokens", ElementType::i32, {length}, "", "the text; zeros behind it"},
                {"optimal_nats", ElementType::f32, {}, "nat", "least expected loss of the block's tokens"}} {}

  std::string_view name() const override { return name_; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream random(seed, index, purpose_text);
    double log_p = 0;
    std::vector<std::int32_t> tokens = draw_block(language_, length_, random, log_p);
    put(out[1], static_cast<float>(entropy_.nats(tokens)));
    tokens.resize(static_cast<std::size_t>(length_), token::pad);
    put_all<std::int32_t>(out[0], tokens);
  }

  std::map<std::string, Tensor> shared_arrays(std::uint64_t) const override {
    return vocabulary_array(language_);
  }
  nlohmann::json parameters() const override { return language_parameters(settings_, language_, length_); }

 private:
  std::string name_;
  LanguageSettings settings_;
  int length_;
  Language language_;
  BlockEntropy entropy_;
  std::vector<Field> fields_;
};

std::unique_ptr<Generator> make_named(const char* name, const Options& options) {
  return std::make_unique<TextGenerator>(name, language_of_options(options),
                                         static_cast<int>(options.integer("length", 16, 4096)));
}
std::unique_ptr<Generator> make_gpt2(const Options& options) { return make_named("gpt2", options); }
std::unique_ptr<Generator> make_llama(const Options& options) { return make_named("llama", options); }

constexpr const char* summary = "text of a grammar with known entropy, with the least possible loss";

}  // namespace

std::vector<std::int32_t> draw_block(const Language& language, int length, RandomStream& random,
                                     double& log_p) {
  std::vector<std::int32_t> tokens = {token::cls};
  for (;;) {
    const std::vector<int> sentence = language.grammar().draw(random);
    if (sentence.size() > longest_sentence) continue;
    const bool fits = tokens.size() + sentence.size() + ends <= static_cast<std::size_t>(length);
    if (!fits && tokens.size() == 1) continue;  // longer than a block: another one
    if (!fits) break;
    log_p += log_probability(language.grammar(), sentence);
    tokens.insert(tokens.end(), sentence.begin(), sentence.end());
    tokens.push_back(token::stop);
  }
  tokens.push_back(token::sep);
  return tokens;
}

BlockEntropy::BlockEntropy(const Language& language, int length)
    : language_(language),
      length_(length),
      at_most_(language.grammar().length_probabilities(static_cast<int>(longest_sentence))) {
  for (std::size_t n = 1; n < at_most_.size(); ++n) at_most_[n] += at_most_[n - 1];
}

double BlockEntropy::shorter_than(std::size_t words) const {
  return at_most_[std::min(words, at_most_.size() - 1)];
}

double BlockEntropy::nats(std::span<const std::int32_t> tokens) const {
  constexpr double never = std::numeric_limits<double>::infinity();
  const auto length = static_cast<std::size_t>(length_);
  const double any = shorter_than(longest_sentence);
  double log_p = 0;
  std::vector<int> sentence;
  std::size_t whole = 1;  // tokens up to the last full stop
  for (std::size_t i = 1; i < tokens.size() && tokens[i] != token::pad; ++i) {
    if (tokens[i] == token::sep) {
      if (!sentence.empty() || whole == 1) return never;
      // The sentence that did not fit.
      const double fits = whole + ends < length ? shorter_than(length - ends - whole) / any : 0;
      return fits < 1 ? -(log_p + std::log1p(-fits)) : never;
    }
    if (tokens[i] != token::stop) {
      sentence.push_back(tokens[i]);
      continue;
    }
    const double possible = whole == 1 ? shorter_than(length - ends - 1) : any;
    log_p += log_probability(language_.grammar(), sentence) - std::log(possible);
    sentence.clear();
    whole = i + 1;
  }
  return never;  // it does not end
}

GeneratorEntry gpt2_generator() { return {"gpt2", summary, language_options("128", "50257"), make_gpt2}; }
GeneratorEntry llama_generator() { return {"llama", summary, language_options("64", "512"), make_llama}; }

}  // namespace superstep::data
