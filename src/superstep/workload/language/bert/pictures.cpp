// Masked words in their sentences, and what the model would put there.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "superstep/physics/language/language.h"
#include "superstep/workload/language/bert/bert.h"
#include "superstep/workload/language/word_scores.h"

namespace superstep::workload {
namespace {

constexpr std::size_t blanks_each = 4;
constexpr std::int64_t words_around = 9;

// A hidden word with its losses, nat.
struct Blank {
  ScoredWord word;
  double loss, least;
};

struct Blocks {
  const Fields& fields;
  const Predictions& found;
  std::int64_t length;

  std::int64_t at(const char* field, std::size_t row, std::int64_t position) const {
    return static_cast<std::int64_t>(fields.at(field).at(found.indices[row] * length + position));
  }
};

std::vector<Blank> blanks_of(const Blocks& blocks) {
  const Tensor &least = blocks.fields.at("optimal_nats"), &labels = blocks.fields.at("labels");
  std::vector<Blank> blanks;
  for (const ScoredWord& each : scored_words(labels, blocks.found.indices, blocks.found.outputs[0])) {
    const double loss = log_of_sum(each.scores) - each.scores[static_cast<std::size_t>(each.word)];
    blanks.push_back({each, loss, least.at(blocks.found.indices[each.row] * blocks.length + each.place)});
  }
  return blanks;
}

// The words around the blank; padding is left out.
std::string sentence_of(const Blocks& blocks, const TokenWords& language, const Blank& blank) {
  const std::int64_t first = std::max<std::int64_t>(0, blank.word.place - words_around);
  const std::int64_t last = std::min(blocks.length, blank.word.place + words_around + 1);
  std::vector<std::string> words;
  if (first > 0) words.emplace_back("…");
  for (std::int64_t position = first; position < last; ++position) {
    const auto token = static_cast<int>(blocks.at("input_ids", blank.word.row, position));
    if (token == data::token::pad) continue;
    words.push_back(position == blank.word.place ? "▁▁▁▁" : language(token));
  }
  if (last < blocks.length) words.emplace_back("…");
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

std::string present_masked_words(const Fields& fields, const Predictions& found, page::Page& page) {
  const std::int64_t length = fields.at("labels").shape()[1];
  const Blocks blocks{fields, found, length};
  const std::vector<Blank> blanks = blanks_of(blocks);
  if (blanks.empty()) {
    page.paragraph("No word of these samples is hidden.");
    return {};
  }
  const TokenWords language(static_cast<int>(found.outputs[0].shape()[2]), true);
  std::vector<double> losses, least;
  for (const Blank& blank : blanks) losses.push_back(blank.loss), least.push_back(blank.least);
  std::vector<std::vector<std::string>> rows;
  for (const Chosen& chosen : best_median_worst(losses, blanks_each)) {
    const Blank& blank = blanks[chosen.at];
    rows.push_back({chosen.why, sentence_of(blocks, language, blank), language(blank.word.word),
                    guesses_of(language, blank.word.scores), fmt::format("{:.2f}", blank.loss),
                    fmt::format("{:.2f}", blank.least)});
  }
  page.plot(losses_plot("Loss of the hidden words", losses, least));
  page.heading("Hidden words", 3)
      .table({"", "sentence", "true word", "the model's guesses", "loss, nat", "least, nat"}, rows);
  return {};
}

}  // namespace superstep::workload
