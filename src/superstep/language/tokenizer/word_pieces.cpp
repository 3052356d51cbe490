#include "superstep/language/tokenizer/word_pieces.h"

#include <utf8proc.h>

#include <array>
#include <utility>

namespace superstep::language {
namespace {

using Code = utf8proc_int32_t;

bool is_ideograph(Code c) {
  constexpr std::pair<Code, Code> blocks[] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                              {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf},
                                              {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  for (const auto& [first, last] : blocks)
    if (c >= first && c <= last) return true;
  return false;
}

bool is_space(Code c) {
  if ((c >= '\t' && c <= '\r') || c == 0x85) return true;
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

// Control, format, private, and what is no character.
bool is_left_out(Code c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c == 0 || c == 0xfffd) return true;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN: return true;
    default: return false;
  }
}

// The signs of ASCII, "$" and "^" too, and Unicode's punctuation.
bool is_sign(Code c) {
  if ((c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126))
    return true;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return true;
    default: return false;
  }
}

// A character in its form: none, one or several.
std::vector<Code> in_form(Code c, const WordForm& form) {
  std::vector<Code> parts{c};
  if (form.strip_accents) {
    std::array<Code, 32> decomposed{};  // no character has more than eighteen parts
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
    const auto count =
        utf8proc_decompose_char(c, decomposed.data(), std::ssize(decomposed), options, nullptr);
    if (count > 0 && count <= std::ssize(decomposed))
      parts.assign(decomposed.begin(), decomposed.begin() + count);
    std::erase_if(parts, [](Code each) { return utf8proc_category(each) == UTF8PROC_CATEGORY_MN; });
  }
  if (!form.lowercase) return parts;
  // The one letter whose small form is two (Unicode's SpecialCasing, without languages): a dotted capital I.
  constexpr Code dotted = 0x130, dot_above = 0x307;
  if (parts == std::vector<Code>{dotted}) return {'i', dot_above};
  for (Code& each : parts) each = utf8proc_tolower(each);
  return parts;
}

void append(std::string& text, Code c) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(c, bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(count));
}

class Cutter {
 public:
  explicit Cutter(const WordForm& form) : form_(form) {}

  // The character of bytes [begin, end).
  void take(Code c, std::size_t begin, std::size_t end) {
    if (form_.clean && is_left_out(c)) return;
    if (is_space(c)) return close();
    const bool alone = form_.ideographs && is_ideograph(c);
    if (alone) close();
    for (const Code part : in_form(c, form_)) {
      if (is_space(part)) {
        close();
        continue;
      }
      const bool sign = is_sign(part);
      if (sign) close();
      if (word_.text.empty()) word_.begin = begin;
      append(word_.text, part);
      word_.end = end;
      if (sign) close();
    }
    if (alone) close();
  }

  std::vector<Word> finish() {
    close();
    return std::move(words_);
  }

 private:
  void close() {
    if (!word_.text.empty()) words_.push_back(word_);
    word_ = {};
  }

  WordForm form_;
  Word word_;
  std::vector<Word> words_;
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::vector<Word> words_of(std::string_view text, const WordForm& form) {
  Cutter cutter(form);
  for (std::size_t at = 0; at < text.size();) {
    Code c = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                         static_cast<utf8proc_ssize_t>(text.size() - at), &c);
    if (length <= 0) break;  // callers have looked for bytes that are no UTF-8
    cutter.take(c, at, at + static_cast<std::size_t>(length));
    at += static_cast<std::size_t>(length);
  }
  return cutter.finish();
}

std::string tidied(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> joined[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : joined) replace_all(text, from, to);
  return text;
}

}  // namespace superstep::language
