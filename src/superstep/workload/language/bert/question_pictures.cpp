// Questions, the sentence that is asked for and what the model takes for the answer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "superstep/physics/language/language.h"
#include "superstep/workload/language/bert/bert.h"
#include "superstep/workload/language/word_scores.h"
#include "superstep/workload/pictures/pictures.h"

namespace superstep::workload {
namespace {

using baseline::Span;

constexpr std::size_t questions_each = 4;
constexpr std::int64_t words_around = 8;

struct Question {
  std::span<const std::int32_t> tokens;
  std::int64_t text = 0;  // the place of its first token
  Span truth, found;
  double f1 = 0;
};

std::string words_of(const Question& question, const TokenWords& language, std::int64_t first,
                     std::int64_t last) {
  std::vector<std::string> words;
  for (std::int64_t i = std::max<std::int64_t>(first, 0);
       i <= std::min(last, static_cast<std::int64_t>(question.tokens.size()) - 1); ++i) {
    const std::int32_t each = question.tokens[static_cast<std::size_t>(i)];
    words.push_back(language.is_generated() && each == data::token::unknown ? std::string("who")
                                                                            : language(each));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<Question> questions_of(const Fields& fields, const Predictions& found) {
  const Tensor& ids = fields.at("input_ids");
  const auto length = static_cast<std::size_t>(ids.shape()[1]);
  std::vector<Question> questions;
  for (std::size_t row = 0; row < found.indices.size(); ++row) {
    const std::int64_t index = found.indices[row];
    Question each{ids.as<std::int32_t>().subspan(static_cast<std::size_t>(index) * length, length),
                  static_cast<std::int64_t>(text_of(fields, index).begin),
                  {static_cast<std::int64_t>(fields.at("start").at(index)),
                   static_cast<std::int64_t>(fields.at("end").at(index))},
                  answer_of(fields, index, row, found.outputs)};
    each.f1 = baseline::score_answer(each.tokens, each.found, each.truth).f1;
    questions.push_back(each);
  }
  return questions;
}

}  // namespace

std::string present_questions(int vocabulary, const Fields& fields, const Predictions& found,
                              page::Page& page) {
  const std::vector<Question> questions = questions_of(fields, found);
  const TokenWords language(vocabulary, fields.contains("optimal_exact"));
  std::vector<double> wrong;
  for (const Question& each : questions) wrong.push_back(1 - each.f1);
  std::vector<std::vector<std::string>> rows;
  for (const Chosen& chosen : best_median_worst(wrong, questions_each)) {
    const Question& each = questions[chosen.at];
    rows.push_back({chosen.why, words_of(each, language, 1, each.text - 2),
                    words_of(each, language, std::max(each.truth.first - words_around, each.text),
                             each.truth.last + words_around),
                    words_of(each, language, each.truth.first, each.truth.last),
                    words_of(each, language, each.found.first, each.found.last),
                    fmt::format("{:.2f}", each.f1)});
  }
  page.heading("Questions", 3)
      .table({"", "question", "text around the answer", "answer", "the model's answer", "F1"}, rows);
  return {};
}

}  // namespace superstep::workload
