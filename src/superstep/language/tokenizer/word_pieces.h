// Texts as pieces of words (Y. Wu et al., arXiv 1609.08144), as BERT's models have them: words and signs are
// told apart, brought to one form, and cut into the longest pieces that are tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::language {

// What is done to a text before it is cut into words.
struct WordForm {
  bool clean = true;       // signs of control are left out
  bool ideographs = true;  // each is a word of its own
  bool lowercase = true;
  bool strip_accents = true;  // "é" is "e"
};

// A word in its form, and the bytes of the text that it stands for.
struct Word {
  std::string text;
  std::size_t begin = 0, end = 0;
};

// Words end at spaces; every sign of punctuation is one. `text` is UTF-8.
std::vector<Word> words_of(std::string_view text, const WordForm& form);

// How decoded words are joined: no space before signs that have none in English, nor within "don't".
std::string tidied(std::string text);

}  // namespace superstep::language
