// Blocks of synthetic text for masked language models (workloads bert-small and distilbert): whole sentences
// of a grammar, words hidden as BERT hides them, and for each hidden word the loss that Bayes' answer has.
// The mean of `optimal_nats` over the scored positions is the least loss that any model can reach.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "superstep/base/random.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/language/grammar_chart.h"
#include "superstep/physics/language/language.h"

namespace superstep::data {

// .txt holds the sentences, one a line, and the vocabulary goes beside it as NAME.vocab.txt; anything else is
// HDF5.
GeneratorEntry bert_small_generator();
GeneratorEntry distilbert_generator();

// What every generator of such text has: the options of the language, with these lengths and vocabularies by
// default; its settings out of them; and what a file says of it.
std::vector<OptionSpec> language_options(const char* length, const char* vocabulary);
LanguageSettings language_of_options(const Options& options);
nlohmann::json language_parameters(const LanguageSettings& settings, const Language& language, int length);
// The surfaces of all tokens as the shared array `vocabulary`.
std::map<std::string, Tensor> vocabulary_array(const Language& language);

// Hides words of `tokens` as BERT does: what is seen, and the true words where it is scored, else -100.
struct HiddenWords {
  std::vector<std::int32_t> input_ids, labels;
};
HiddenWords hide_words(const Language& language, RandomStream& random, std::span<const std::int32_t> tokens);

// Words are chosen with probability 0.15; [CLS], [SEP] and the full stop never are.
MaskingChannel masking_of(const Language& language);

// The settings in the attribute `parameters` of a generated file; throws Error (bad_file) without them.
LanguageSettings language_settings(const nlohmann::json& parameters);

// The exact loss at the scored positions of one block (`labels` of -100 are not scored), from its tokens;
// infinite where the grammar cannot make the text. Throws Error (bad_file) on a sentence that is too long.
std::vector<float> optimal_nats(const Language& language, std::span<const std::int32_t> tokens,
                                std::span<const std::int32_t> input_ids,
                                std::span<const std::int32_t> labels);

inline constexpr std::int32_t not_scored = -100;

// Longer sentences are drawn again. That a sentence is no longer tells nothing about its words beyond its
// length, which is seen, so that the posterior stays exact.
inline constexpr std::size_t longest_sentence = 200;

}  // namespace superstep::data
