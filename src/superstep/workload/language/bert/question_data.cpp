// Questions about text of a synthetic language. How often the best possible answer is right is known.
#include <algorithm>
#include <limits>

#include "superstep/physics/language/language.h"
#include "superstep/workload/language/bert/bert.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

using baseline::AnswerScore;
using baseline::Span;
using Tokens = std::span<const std::int32_t>;

constexpr std::size_t longest_answer = 30;
constexpr const char* best_field = "optimal_exact";  // files of others do not have it
constexpr double allowed_of_best =
    0.95;  // a model is good that is right so often as a share of the best there is

Tokens tokens_of(const Fields& fields, std::int64_t question) {
  const Tensor& ids = fields.at("input_ids");
  const auto length = static_cast<std::size_t>(ids.shape()[1]);
  return ids.as<std::int32_t>().subspan(static_cast<std::size_t>(question) * length, length);
}

Span truth_of(const Fields& fields, std::int64_t question) {
  const Span truth{static_cast<std::int64_t>(fields.at("start").at(question)),
                   static_cast<std::int64_t>(fields.at("end").at(question))};
  const auto length = static_cast<std::int64_t>(tokens_of(fields, question).size());
  if (truth.first < 0 || truth.last < truth.first || truth.last >= length)
    throw Error(ErrorCode::bad_file, "an answer lies outside of its text", "start, end");
  return truth;
}

std::vector<Metric> answer_quality(const Fields& fields, std::span<const std::int64_t> indices,
                                   std::span<const Tensor> outputs) {
  const auto best = fields.find(best_field);
  AnswerScore sum;
  double bound = 0;
  for (std::size_t row = 0; row < indices.size(); ++row) {
    const AnswerScore own =
        baseline::score_answer(tokens_of(fields, indices[row]), answer_of(fields, indices[row], row, outputs),
                               truth_of(fields, indices[row]));
    sum.exact += own.exact, sum.f1 += own.f1;
    if (best != fields.end()) bound += best->second.at(indices[row]);
  }
  const double count = std::max(1.0, static_cast<double>(indices.size()));
  std::vector<Metric> metrics{quality_metric("exact_match", sum.exact / count),
                              quality_metric("f1", sum.f1 / count)};
  if (best != fields.end()) metrics.push_back(quality_metric("exact_bound", bound / count));
  return metrics;
}

// Nothing is learnt: all samples are judged alike. Where sentences end in the tokens of others is not known.
References shared_words(const TableSamples& samples) {
  if (!samples.fields.contains(best_field)) return {};
  double first = 0, overlap = 0, best = 0;
  for (const std::int64_t question : samples.indices) {
    const Tokens tokens = tokens_of(samples.fields, question);
    const Span truth = truth_of(samples.fields, question);
    first += baseline::score_answer(tokens, baseline::first_words(tokens), truth).exact;
    overlap += baseline::score_answer(tokens, baseline::answer_by_overlap(tokens), truth).exact;
    best += samples.fields.at(best_field).at(question);
  }
  const auto count = static_cast<double>(samples.indices.size());
  return {.floor = Reference{"the first two words", first / count},
          .conventional = Reference{"words shared with the question", overlap / count},
          .limit = Reference{"the best answer there is", best / count},
          .target = allowed_of_best * best / count};
}

}  // namespace

Span best_span(std::span<const float> start, std::span<const float> end, std::size_t begin,
               std::size_t stop) {
  Span best{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin)};
  float highest = -std::numeric_limits<float>::infinity();
  for (std::size_t first = begin; first < stop; ++first)
    for (std::size_t last = first; last < std::min(stop, first + longest_answer); ++last)
      if (const float score = start[first] + end[last]; score > highest) {
        highest = score;
        best = {static_cast<std::int64_t>(first), static_cast<std::int64_t>(last)};
      }
  return best;
}

TextPlaces text_of(const Fields& fields, std::int64_t question) {
  const Tensor &types = fields.at("token_type_ids"), &mask = fields.at("attention_mask");
  const std::int64_t length = types.shape()[1], from = question * length;
  std::int64_t begin = 0, end = 0;
  while (begin < length - 1 && types.at(from + begin) != 1) ++begin;
  for (end = begin; end < length && types.at(from + end) == 1 && mask.at(from + end) == 1;) ++end;
  // The last of them is the [SEP] behind the text.
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(std::max(begin, end - 1))};
}

Span answer_of(const Fields& fields, std::int64_t question, std::size_t row,
               std::span<const Tensor> outputs) {
  const auto length = static_cast<std::size_t>(fields.at("input_ids").shape()[1]);
  const auto [begin, stop] = text_of(fields, question);
  const auto scores = [&](const Tensor& output) { return output.as<float>().subspan(row * length, length); };
  return best_span(scores(outputs[0]), scores(outputs[1]), begin, stop);
}

std::unique_ptr<Task> open_questions(const TaskSettings& settings, const Options& model) {
  const int vocabulary = static_cast<int>(model.integer("vocabulary", 64, 1000000));
  return open_table_task(
      {.generator = "bert-base-squad",
       .settings = {"length=" + model.text("length"), "vocabulary=" + model.text("vocabulary"),
                    "exchanged=" + model.text("exchanged"), "shortest=" + model.text("shortest")},
       .default_samples = 4000,
       .training_share = 0.9,
       .group = {},
       .inputs = {{"input_ids"}, {"attention_mask"}, {"token_type_ids"}},
       .targets = {{"start"}, {"end"}},
       .more = {},
       .quality = answer_quality,
       .mask = "attention_mask",
       .present = [vocabulary](
                      const Fields& fields, const Predictions& found,
                      page::Page& page) { return present_questions(vocabulary, fields, found, page); },
       .references = shared_words,
       .reference_seconds = 0.2,
       .reference_fields = {best_field}},
      settings);
}

}  // namespace superstep::workload
