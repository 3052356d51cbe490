// Blocks of synthetic text for masked language models (workloads bert-small and distilbert): whole sentences
// of a grammar, words hidden as BERT hides them, and for each hidden word the loss that Bayes' answer has.
// The mean of `optimal_nats` over the scored positions is the least loss that any model can reach.
#pragma once

#include "superstep/data/generator.h"
#include "superstep/data/grammar_chart.h"
#include "superstep/data/language.h"

namespace superstep::data {

// .txt holds the sentences, one a line, and the vocabulary goes beside it as NAME.vocab.txt; anything else is
// HDF5.
GeneratorEntry bert_small_generator();
GeneratorEntry distilbert_generator();

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
