// The parts of the transformer encoders, that their files share: model.cpp, pretraining.cpp and questions.cpp
// (with the workloads themselves), their data and pictures.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "superstep/baseline/language/questions.h"
#include "superstep/file/weights/names.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// Blocks of a synthetic language with masked words.
std::unique_ptr<Task> open_masked_words(const TaskSettings& settings, const Options& model);
// Pairs of paragraphs with masked words, of which the second follows the first or does not.
std::unique_ptr<Task> open_paragraph_pairs(const TaskSettings& settings, const Options& model);
// Questions about a text, in which the answer stands.
std::unique_ptr<Task> open_questions(const TaskSettings& settings, const Options& model);

// Words that are wanted of a block of so many tokens, at most.
std::int64_t masked_places(std::int64_t length);

// A hidden word, and what a model says of its place.
struct ScoredWord {
  std::size_t row = 0;  // of the predictions
  std::int64_t place = 0, word = 0;
  std::span<const float> scores;  // a token each
};
// Of some blocks, by `labels` [blocks, T], which are negative where nothing is hidden. `output`: a row a
// block of scores of all T places, or of as many hidden words as it has places, from the first on. Throws
// Error (bad_file) on a word that is not among the model's.
std::vector<ScoredWord> scored_words(const Tensor& labels, std::span<const std::int64_t> indices,
                                     const Tensor& output);

// Masked words in their sentences, and what the model would put there.
std::string present_masked_words(const Fields& fields, const Predictions& found, page::Page& page);

// The answer by a model's scores: the likeliest part of the text, of at most 30 tokens as SQuAD's programs
// have it.
baseline::Span best_span(std::span<const float> start, std::span<const float> end, std::size_t begin,
                         std::size_t stop);

// The places [begin, end) of a question's text: those of type 1 before the [SEP] behind them, whatever tokens
// they are.
struct TextPlaces {
  std::size_t begin = 0, end = 0;
};
TextPlaces text_of(const Fields& fields, std::int64_t question);

// The same of question `question`, whose scores are row `row` of the outputs start and end.
baseline::Span answer_of(const Fields& fields, std::int64_t question, std::size_t row,
                         std::span<const Tensor> outputs);

// Questions, the text around their answers and what the model takes for them.
std::string present_questions(int vocabulary, const Fields& fields, const Predictions& found,
                              page::Page& page);

// What Hugging Face calls the arrays of BERT.
std::span<const data::NameRule> bert_names();

}  // namespace superstep::workload
