// Questions about text, and where in it the answer stands, in the form of SQuAD (P. Rajpurkar et al., EMNLP
// 2016): a text of sentences of the grammar, and for one of them the question who does what it tells. The
// answer is the sentence's subject. Some words of a question are exchanged for any others, and two sentences
// may tell the same: how often the best answer is right is known for every question.
#pragma once

#include "superstep/physics/generator.h"
#include "superstep/physics/language/language_generator.h"

namespace superstep::data {

GeneratorEntry bert_base_squad_generator();

// A sentence of a text: where its subject is, and what is told of it. Positions are those of the block.
struct Statement {
  int subject_first = 0, subject_last = 0, last = 0;
};

// How likely each statement is the one that is asked for, given the question; all of them alike before.
// `words`: what an exchanged word may be.
std::vector<double> asked_for(std::span<const std::int32_t> tokens, std::span<const Statement> statements,
                              std::span<const std::int32_t> question, double exchanged, int words);

}  // namespace superstep::data
