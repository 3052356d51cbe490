#include "superstep/workload/language/word_scores.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace superstep::workload {

double log_of_sum(std::span<const float> scores) {
  const double top = std::ranges::max(scores);
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score) - top);
  return std::log(sum) + top;
}

TokenWords::TokenWords(int vocabulary, bool generated) {
  if (generated) language_.emplace(data::LanguageSettings{.vocabulary = vocabulary});
}

std::string TokenWords::operator()(std::int64_t token) const {
  if (!language_ || token < 0 || token >= language_->vocabulary()) return fmt::format("#{}", token);
  return language_->surface(static_cast<int>(token));
}

std::string guesses_of(const TokenWords& words, std::span<const float> scores) {
  constexpr std::size_t guesses = 4;
  const double sum = log_of_sum(scores);
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = static_cast<std::ptrdiff_t>(std::min(guesses, order.size()));
  std::ranges::partial_sort(order, order.begin() + count, std::greater(),
                            [&](int word) { return scores[static_cast<std::size_t>(word)]; });
  std::vector<std::string> texts;
  for (int word : std::span(order).first(static_cast<std::size_t>(count)))
    texts.push_back(fmt::format("{} {:.0f} %", words(word),
                                100 * std::exp(scores[static_cast<std::size_t>(word)] - sum)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

page::Plot losses_plot(const char* title, const std::vector<double>& losses,
                       const std::vector<double>& least) {
  constexpr double usual_end = 10;
  const double high = std::max(std::ranges::max(losses), least.empty() ? 0 : std::ranges::max(least));
  const double end = std::isfinite(high) ? high : usual_end;
  page::Plot plot{.title = title,
                  .x_label = "\u2212log of the probability of the true word, nat",
                  .y_label = "words",
                  .series = {page::histogram("the model", losses, 0, end, 40)}};
  if (!least.empty()) plot.series.push_back(page::histogram("the best answer there is", least, 0, end, 40));
  for (page::Series& series : plot.series) series.style = page::Series::Style::steps;
  return plot;
}

}  // namespace superstep::workload
