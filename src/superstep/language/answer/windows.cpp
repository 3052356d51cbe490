#include "superstep/language/answer/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "superstep/base/error.h"

namespace superstep::language {
namespace {

constexpr std::size_t signs = 3;  // [CLS] and two [SEP]

// How much text a window shows around one of its tokens: on the side where it is less, then in all.
std::tuple<std::size_t, std::size_t> context_of(const Window& window, std::size_t token) {
  const std::size_t before = token - window.first, behind = window.count - before - 1;
  return {std::min(before, behind), window.count};
}

// By token of the text: the window that shows most around it, of equal ones the first.
std::vector<std::size_t> windows_of_tokens(std::span<const Window> windows) {
  std::vector<std::size_t> chosen(windows.back().first + windows.back().count, windows.size());
  for (std::size_t w = 0; w < windows.size(); ++w)
    for (std::size_t token = windows[w].first; token < windows[w].first + windows[w].count; ++token)
      if (chosen[token] == windows.size() ||
          context_of(windows[w], token) > context_of(windows[chosen[token]], token))
        chosen[token] = w;
  return chosen;
}

}  // namespace

std::vector<Window> windows_of(std::span<const std::int32_t> question, std::span<const std::int32_t> text,
                               const WindowSettings& s) {
  if (question.empty())
    throw Error(ErrorCode::invalid_argument, "it is empty", "the question", "ask something");
  if (text.empty())
    throw Error(ErrorCode::invalid_argument, "it is empty", "the text",
                "give the text in which the answer stands");
  if (question.size() + signs >= s.length)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("its {} tokens leave no room for a text: the model reads {} at once",
                            question.size(), s.length),
                "the question", "ask in fewer words, or give a larger --length");
  const std::size_t room = s.length - question.size() - signs;
  std::vector<Window> windows;
  for (std::size_t first = 0;;) {
    Window window{.tokens = {s.first_token}, .text = question.size() + 2, .first = first};
    window.count = std::min(room, text.size() - first);
    window.tokens.insert(window.tokens.end(), question.begin(), question.end());
    window.tokens.push_back(s.separator);
    const auto part = text.subspan(first, window.count);
    window.tokens.insert(window.tokens.end(), part.begin(), part.end());
    window.tokens.push_back(s.separator);
    const std::size_t end = first + window.count;
    first += std::min(window.count, std::max<std::size_t>(1, s.stride));
    windows.push_back(std::move(window));
    if (end == text.size()) return windows;
  }
}

std::vector<Answer> best_answers(std::span<const Window> windows, std::span<const WindowScores> scores,
                                 std::size_t most, std::size_t longest) {
  const std::vector<std::size_t> chosen = windows_of_tokens(windows);
  std::vector<Answer> answers;
  for (std::size_t first = 0; first < chosen.size(); ++first) {
    const Window& window = windows[chosen[first]];
    const WindowScores& own = scores[chosen[first]];
    const std::size_t stop = std::min(window.first + window.count, first + longest);
    for (std::size_t last = first; last < stop; ++last)
      answers.push_back({.first = first,
                         .last = last,
                         .score = own.start[window.text + first - window.first] +
                                  own.end[window.text + last - window.first]});
  }
  const double top = std::ranges::max_element(answers, {}, &Answer::score)->score;
  double sum = 0;
  for (Answer& each : answers) sum += each.share = std::exp(static_cast<double>(each.score) - top);
  for (Answer& each : answers) each.share /= sum;
  // Of equal ones the first in the text: the same on every machine.
  const auto better = [](const Answer& a, const Answer& b) {
    return std::tuple(-a.score, a.first, a.last) < std::tuple(-b.score, b.first, b.last);
  };
  const std::size_t kept = std::min(most, answers.size());
  std::partial_sort(answers.begin(), answers.begin() + static_cast<std::ptrdiff_t>(kept), answers.end(),
                    better);
  answers.resize(kept);
  return answers;
}

}  // namespace superstep::language
