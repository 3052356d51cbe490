// Windows over a long text, and the answers in them.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/language/answer/windows.h"
#include "tests/expect_error.h"

namespace superstep::language {
namespace {

using Tokens = std::vector<std::int32_t>;

Tokens numbered(std::int32_t first, std::size_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

constexpr WindowSettings settings{.first_token = 101, .separator = 102, .length = 12, .stride = 4};

// The windows as the authors' program makes them, by hand: of 12 tokens 7 are text.
TEST(Windows, OverlapAndLeaveNothingOut) {
  const auto windows = windows_of(numbered(1, 2), numbered(50, 16), settings);
  ASSERT_EQ(windows.size(), 4u);
  EXPECT_EQ(windows[0].tokens, (Tokens{101, 1, 2, 102, 50, 51, 52, 53, 54, 55, 56, 102}));
  EXPECT_EQ(windows[1].tokens, (Tokens{101, 1, 2, 102, 54, 55, 56, 57, 58, 59, 60, 102}));
  EXPECT_EQ(windows[3].tokens, (Tokens{101, 1, 2, 102, 62, 63, 64, 65, 102}));
  EXPECT_EQ(windows[3].first, 12u);
  EXPECT_EQ(windows[3].text, 4u);
  // A stride beyond a window's text leaves nothing out either.
  WindowSettings wide = settings;
  wide.stride = 100;
  std::size_t next = 0;
  for (const Window& window : windows_of(numbered(1, 2), numbered(50, 16), wide)) {
    EXPECT_EQ(window.first, next);
    next += window.count;
  }
  EXPECT_EQ(next, 16u);
}

TEST(Windows, SaysWhatIsMissing) {
  expect_error(ErrorCode::invalid_argument, {"the question", "empty"},
               [] { windows_of({}, numbered(50, 3), settings); });
  expect_error(ErrorCode::invalid_argument, {"the text", "empty"},
               [] { windows_of(numbered(1, 3), {}, settings); });
  expect_error(ErrorCode::invalid_argument, {"9 tokens leave no room", "reads 12 at once"},
               [] { windows_of(numbered(1, 9), numbered(50, 3), settings); });
}

// Scores that are a function of window and token: every answer by the window that the rule names.
TEST(Windows, AnswersAreThoseOfAllPairs) {
  const std::size_t size = 23, longest = 5;
  const auto windows = windows_of(numbered(1, 2), numbered(50, size), settings);
  RandomStream random(3);
  std::vector<std::vector<float>> start, end;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    start.emplace_back(12), end.emplace_back(12);
    for (std::size_t i = 0; i < 12; ++i)
      start.back()[i] = static_cast<float>(random.normal()),
      end.back()[i] = static_cast<float>(random.normal());
  }
  std::vector<WindowScores> scores;
  for (std::size_t w = 0; w < windows.size(); ++w) scores.push_back({start[w], end[w]});
  std::vector<Answer> all;
  double sum = 0;
  for (std::size_t first = 0; first < size; ++first) {
    std::size_t best = windows.size();
    double most = -1;
    for (std::size_t w = 0; w < windows.size(); ++w) {
      if (first < windows[w].first || first >= windows[w].first + windows[w].count) continue;
      // As the authors' program weighs it: the thinner side, and a little for a longer window.
      const double context = static_cast<double>(std::min(first - windows[w].first,
                                                          windows[w].first + windows[w].count - 1 - first)) +
                             0.01 * static_cast<double>(windows[w].count);
      if (context > most) most = context, best = w;
    }
    for (std::size_t last = first;
         last < std::min({size, first + longest, windows[best].first + windows[best].count}); ++last) {
      const std::size_t at = windows[best].text - windows[best].first;
      all.push_back({first, last, start[best][at + first] + end[best][at + last], 0});
      sum += std::exp(static_cast<double>(all.back().score));
    }
  }
  std::ranges::sort(all, std::ranges::greater(), &Answer::score);
  const auto found = best_answers(windows, scores, 10, longest);
  ASSERT_EQ(found.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(found[i].first, all[i].first);
    EXPECT_EQ(found[i].last, all[i].last);
    EXPECT_NEAR(found[i].share, std::exp(static_cast<double>(all[i].score)) / sum, 1e-9);
  }
  EXPECT_EQ(best_answers(windows, scores, 100000, longest).size(), all.size());
}

}  // namespace
}  // namespace superstep::language
