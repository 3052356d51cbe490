// Questions answered by the words that they share with the text: the sliding window of SQuAD's paper (P.
// Rajpurkar et al., EMNLP 2016, section 5), for sentences.
#pragma once

#include <cstdint>
#include <span>

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

struct Span {
  std::int64_t first = 0, last = 0;  // tokens of a block
};

// Of the sentence of the text that shares most words with the question, in their order: what stands before
// the first of them. `tokens`: [CLS] question [SEP] text [SEP], the question with one token before its words.
Span answer_by_overlap(std::span<const std::int32_t> tokens);
// The first two words of the text: of what anybody could say without reading.
Span first_words(std::span<const std::int32_t> tokens);

// How alike two answers are as SQuAD counts it: the harmonic mean of the shares of each that are in the
// other, and whether they are the same, word by word.
struct AnswerScore {
  double f1 = 0, exact = 0;
};
AnswerScore score_answer(std::span<const std::int32_t> tokens, const Span& found, const Span& truth);

Entry bert_base_squad_baseline();

}  // namespace superstep::baseline
