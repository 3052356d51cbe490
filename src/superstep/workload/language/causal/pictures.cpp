// Words in their sentences, and what the model would go on with in their place.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "superstep/workload/language/causal/causal.h"
#include "superstep/workload/language/word_scores.h"

namespace superstep::workload {
namespace {

constexpr std::size_t words_each = 4;
constexpr std::int64_t words_before = 12;

std::string beginning_of(std::span<const std::int32_t> block, const TokenWords& language,
                         std::int64_t place) {
  const std::int64_t first = std::max<std::int64_t>(0, place - words_before);
  std::vector<std::string> words;
  if (first > 0) words.emplace_back("…");
  for (std::int64_t i = first; i < place; ++i) words.push_back(language(block[static_cast<std::size_t>(i)]));
  words.emplace_back("▁▁▁▁");
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

std::string present_next_words(const Fields& fields, const Predictions& found, page::Page& page) {
  const Tensor& tokens = fields.at("tokens");
  const std::vector<NextWord> words = next_words_of(tokens, found.indices, found.outputs[0]);
  if (words.empty()) {
    page.paragraph("No block of these samples has a second token.");
    return {};
  }
  const TokenWords language(static_cast<int>(found.outputs[0].shape()[2]), fields.contains("optimal_nats"));
  const auto length = static_cast<std::size_t>(tokens.shape()[1]);
  std::vector<double> losses;
  for (const NextWord& each : words)
    losses.push_back(log_of_sum(each.scores) - each.scores[static_cast<std::size_t>(each.word)]);
  std::vector<std::vector<std::string>> rows;
  for (const Chosen& chosen : best_median_worst(losses, words_each)) {
    const NextWord& each = words[chosen.at];
    const auto block =
        tokens.as<std::int32_t>().subspan(static_cast<std::size_t>(found.indices[each.row]) * length, length);
    rows.push_back({chosen.why, beginning_of(block, language, each.place), language(each.word),
                    guesses_of(language, each.scores), fmt::format("{:.2f}", losses[chosen.at])});
  }
  page.plot(losses_plot("Loss of the words that come next", losses, {}));
  page.heading("What comes next", 3)
      .table({"", "text so far", "true word", "the model's guesses", "loss, nat"}, rows);
  return {};
}

}  // namespace superstep::workload
