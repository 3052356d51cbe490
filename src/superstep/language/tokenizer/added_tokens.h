// Tokens that are looked for in a text itself ("</s>"), before it is cut and joined.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::language {

struct AddedToken;

// A token, or text between tokens.
struct TextPart {
  std::int32_t token = -1;  // -1: text
  std::size_t begin = 0, end = 0;
};

// From left to right, of those that begin at the same place the longest; `tokens` are longest first. A token
// takes the spaces beside it, and is none within a word, where it says so (as Hugging Face's tokenizers have
// lstrip, rstrip and single_word). Parts of text are not empty. `text` is UTF-8.
std::vector<TextPart> parts_between(std::string_view text, std::span<const AddedToken> tokens);

}  // namespace superstep::language
