#include "superstep/baseline/language/questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/file/csv.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/language/language.h"

namespace superstep::baseline {
namespace {

using Tokens = std::span<const std::int32_t>;
namespace token = data::token;

// The places of a block's two parts: words of the question [2, separator), text [begin, end).
struct Parts {
  std::size_t separator = 0, begin = 0, end = 0;
};

Parts parts_of(Tokens tokens) {
  const auto first = std::ranges::find(tokens, token::sep) - tokens.begin();
  const auto begin = std::min(static_cast<std::size_t>(first) + 1, tokens.size());
  const auto last = std::ranges::find(tokens.subspan(begin), token::sep) - tokens.begin();
  return {static_cast<std::size_t>(first), begin, std::min(static_cast<std::size_t>(last), tokens.size())};
}

// The longest run of both in the same order, with gaps: how long, and where its first word is in the
// sentence.
struct Shared {
  std::size_t count = 0, first = 0;
};
Shared longest_common(Tokens question, Tokens sentence) {
  // Of suffixes: best[i][j] for question[i..] and sentence[j..].
  const std::size_t n = question.size(), m = sentence.size();
  std::vector<std::size_t> best((n + 1) * (m + 1), 0);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return best[i * (m + 1) + j]; };
  for (std::size_t i = n; i-- > 0;)
    for (std::size_t j = m; j-- > 0;)
      at(i, j) = question[i] == sentence[j] ? 1 + at(i + 1, j + 1) : std::max(at(i + 1, j), at(i, j + 1));
  // The first word is the last place from which all of it can still be had.
  std::size_t first = 0;
  while (first + 1 < m && at(0, first + 1) == at(0, 0)) ++first;
  return {at(0, 0), first};
}

struct Questions {
  Tensor tokens, start, end;
  std::int64_t count = 0, length = 0;
  Tokens block(std::int64_t number) const {
    const auto n = static_cast<std::size_t>(length);
    return tokens.as<std::int32_t>().subspan(static_cast<std::size_t>(number) * n, n);
  }
  Span truth(std::int64_t number) const {
    return {static_cast<std::int64_t>(start.at(number)), static_cast<std::int64_t>(end.at(number))};
  }
};

Questions read_questions(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const std::int64_t any[] = {-1, -1};
  Questions questions;
  questions.tokens = file.read("input_ids", ElementType::i32, any);
  questions.count = questions.tokens.shape()[0], questions.length = questions.tokens.shape()[1];
  const std::int64_t one[] = {questions.count};
  questions.start = file.read("start", ElementType::i32, one);
  questions.end = file.read("end", ElementType::i32, one);
  for (std::int64_t i = 0; i < questions.count; ++i) {
    const Span truth = questions.truth(i);
    if (truth.first < 0 || truth.last < truth.first || truth.last >= questions.length)
      throw Error(ErrorCode::bad_file,
                  fmt::format("the answer to question {} lies from token {} to {} of {}", i, truth.first,
                              truth.last, questions.length),
                  path.string());
  }
  return questions;
}

Report run(const Request& request, const Options&) {
  const Questions questions = read_questions(request.input);
  if (questions.count == 0) throw Error(ErrorCode::bad_file, "holds no questions", request.input.string());
  AnswerScore overlap, first;
  std::vector<Span> answers;
  const Stopwatch watch;
  for (std::int64_t i = 0; i < questions.count; ++i) answers.push_back(answer_by_overlap(questions.block(i)));
  const double seconds = watch.seconds();
  for (std::int64_t i = 0; i < questions.count; ++i) {
    const Tokens block = questions.block(i);
    const AnswerScore own = score_answer(block, answers[static_cast<std::size_t>(i)], questions.truth(i)),
                      least = score_answer(block, first_words(block), questions.truth(i));
    overlap.exact += own.exact, overlap.f1 += own.f1;
    first.exact += least.exact, first.f1 += least.f1;
  }
  const auto count = static_cast<double>(questions.count);
  if (!request.output.empty()) {
    data::CsvWriter file(request.output, {"question", "start", "end"});
    for (std::int64_t i = 0; i < questions.count; ++i) {
      const Span& each = answers[static_cast<std::size_t>(i)];
      file.cell(std::to_string(i)).cell(std::to_string(each.first)).cell(std::to_string(each.last));
      file.end_row();
    }
    file.close();
  }
  Report report;
  report.metrics = {{"exact_match", overlap.exact / count, ""},
                    {"f1", overlap.f1 / count, ""},
                    {"floor_exact_match", first.exact / count, ""},
                    {"throughput", count / seconds, "samples/s"}};
  TextTable table({"method", "exact match", "F1"});
  table.add_row({"the first two words", fmt::format("{:.4f}", first.exact / count),
                 fmt::format("{:.4f}", first.f1 / count)});
  table.add_row({"words shared with the question", fmt::format("{:.4f}", overlap.exact / count),
                 fmt::format("{:.4f}", overlap.f1 / count)});
  report.text = table.to_string();
  return report;
}

}  // namespace

Span answer_by_overlap(Tokens tokens) {
  const Parts parts = parts_of(tokens);
  const std::size_t words = std::min<std::size_t>(2, parts.separator);
  const Tokens question = tokens.subspan(words, parts.separator - words);
  std::size_t most = 0;
  Span best = first_words(tokens);
  for (std::size_t begin = parts.begin; begin < parts.end;) {
    std::size_t end = begin;
    while (end < parts.end && tokens[end] != token::stop) ++end;
    const Shared shared = longest_common(question, tokens.subspan(begin, end - begin));
    if (shared.count > most && shared.first > 0) {
      most = shared.count;
      best = {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin + shared.first) - 1};
    }
    begin = end + 1;
  }
  return best;
}

Span first_words(Tokens tokens) {
  const auto begin = static_cast<std::int64_t>(parts_of(tokens).begin);
  const auto last = static_cast<std::int64_t>(tokens.size()) - 1;
  return {std::min(begin, last), std::min(begin + 1, last)};
}

AnswerScore score_answer(Tokens tokens, const Span& found, const Span& truth) {
  const auto words = [&](const Span& span) {
    const auto first = static_cast<std::size_t>(span.first), last = static_cast<std::size_t>(span.last);
    return std::vector<std::int32_t>(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                     tokens.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  };
  if (found.last < found.first) return {};
  std::vector<std::int32_t> a = words(found), b = words(truth), both;
  const double exact = a == b ? 1 : 0;
  std::ranges::sort(a), std::ranges::sort(b);
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  if (both.empty()) return {};
  return {2 * static_cast<double>(both.size()) / static_cast<double>(a.size() + b.size()), exact};
}

Entry bert_base_squad_baseline() {
  return {"bert-base-squad",
          "the sentence that shares most words with the question, up to the first of them",
          {},
          run};
}

}  // namespace superstep::baseline
