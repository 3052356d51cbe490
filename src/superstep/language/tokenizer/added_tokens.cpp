#include "superstep/language/tokenizer/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "superstep/language/tokenizer/tokenizer_state.h"

namespace superstep::language {
namespace {

using Code = utf8proc_int32_t;

struct Character {
  Code code = -1;  // -1: there is none
  std::size_t bytes = 0;
};

Character first_of(std::string_view text) {
  Character c;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &c.code);
  c.bytes = length > 0 ? static_cast<std::size_t>(length) : 0;
  return c;
}

Character last_of(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && (static_cast<unsigned char>(text[--at]) & 0xc0) == 0x80) continue;
  return first_of(text.substr(at));
}

// White_Space of Unicode.
bool is_space(Code c) {
  if ((c >= '\t' && c <= '\r') || c == 0x85) return true;
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

// What regular expressions over Unicode call a character of a word (UTS 18, Annex C): alphabetic, marks,
// decimal digits, connectors, and what joins. Letters in circles and squares are alphabetic, too.
bool is_of_word(Code c) {
  constexpr std::pair<Code, Code> enclosed[] = {
      {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
  if (c == 0x200c || c == 0x200d) return true;
  if (std::ranges::any_of(enclosed, [c](const auto& range) { return c >= range.first && c <= range.second; }))
    return true;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return false;
  }
}

bool is_within_word(std::string_view text, std::size_t begin, std::size_t end) {
  const Character before = begin > 0 ? last_of(text.substr(0, begin)) : Character{},
                  after = end < text.size() ? first_of(text.substr(end)) : Character{};
  return (before.bytes > 0 && is_of_word(before.code)) || (after.bytes > 0 && is_of_word(after.code));
}

const AddedToken* token_at(std::string_view text, std::span<const AddedToken> tokens) {
  for (const AddedToken& token : tokens)
    if (text.starts_with(token.text)) return &token;
  return nullptr;
}

std::size_t left_of_spaces(std::string_view text, std::size_t begin, std::size_t least) {
  while (begin > least) {
    const Character before = last_of(text.substr(least, begin - least));
    if (before.bytes == 0 || !is_space(before.code)) break;
    begin -= before.bytes;
  }
  return begin;
}

std::size_t right_of_spaces(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    const Character after = first_of(text.substr(end));
    if (after.bytes == 0 || !is_space(after.code)) break;
    end += after.bytes;
  }
  return end;
}

}  // namespace

std::vector<TextPart> parts_between(std::string_view text, std::span<const AddedToken> tokens) {
  std::vector<TextPart> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* token = token_at(text.substr(at), tokens);
    if (!token) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->text.size();
    at = end;
    if (token->whole_word && is_within_word(text, begin, end)) continue;
    if (token->takes_left) begin = left_of_spaces(text, begin, done);
    if (token->takes_right) end = right_of_spaces(text, end);
    if (begin > done) parts.push_back({-1, done, begin});
    parts.push_back({token->id, begin, end});
    at = done = end;
  }
  if (done < text.size()) parts.push_back({-1, done, text.size()});
  return parts;
}

}  // namespace superstep::language
