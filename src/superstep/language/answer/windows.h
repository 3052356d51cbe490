// A question and a text that may be longer than a model reads at once: overlapping windows of the text, each
// behind the question, and the answers that a model's scores of them say (J. Devlin et al., arXiv 1810.04805,
// section 4.2, and the authors' program for texts of any length).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::language {

// [CLS] question [SEP] part of the text [SEP].
struct Window {
  std::vector<std::int32_t> tokens;
  std::size_t text = 0;   // the place in it of the part's first token
  std::size_t first = 0;  // which of the text's tokens that is
  std::size_t count = 0;  // of tokens of the text
};

struct WindowSettings {
  std::int32_t first_token = 0, separator = 0;  // [CLS], [SEP]
  std::size_t length = 384;                     // tokens of a window, at most
  std::size_t stride = 128;                     // of the text's tokens, from window to window
};

// Every token of the text is in one of them. Throws Error (invalid_argument) where there is no question or no
// text, and where the question leaves no room for a text.
std::vector<Window> windows_of(std::span<const std::int32_t> question, std::span<const std::int32_t> text,
                               const WindowSettings& settings);

// A part of the text, by its tokens.
struct Answer {
  std::size_t first = 0, last = 0;
  float score = 0;   // the sum of its two
  double share = 0;  // of all parts of at most `longest` tokens, by the exponentials of their scores
};

// What a model says of a window: two scores a token, of being the answer's first and its last.
struct WindowScores {
  std::span<const float> start, end;
};

// All answers of at most `longest` tokens, the likeliest first; `most` of them. What begins with a token that
// several windows have is scored by the one that shows most text on both sides of it.
std::vector<Answer> best_answers(std::span<const Window> windows, std::span<const WindowScores> scores,
                                 std::size_t most, std::size_t longest = 30);

}  // namespace superstep::language
