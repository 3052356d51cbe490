#include "superstep/graph/text_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "superstep/graph/text_name.h"

namespace superstep::graph {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

bool is_number_character(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-';
}

}  // namespace

void TextCursor::skip_space() {
  for (;;) {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    if (!text_.substr(at_).starts_with("//")) return;
    at_ = std::min(text_.find('\n', at_), text_.size());
  }
}

TextCursor::Mark TextCursor::mark() {
  skip_space();
  return {at_};
}

Error TextCursor::error(Mark mark, std::string message, std::string hint) const {
  const std::string_view before = text_.substr(0, mark.offset);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? before.size() : before.size() - start - 1;
  return Error(ErrorCode::bad_graph, std::move(message), fmt::format("line {}, column {}", line, column + 1),
               std::move(hint));
}

bool TextCursor::at_end() {
  skip_space();
  return at_ == text_.size();
}

bool TextCursor::at(char c) {
  skip_space();
  return at_ < text_.size() && text_[at_] == c;
}

bool TextCursor::take(char c) {
  const bool here = at(c);
  at_ += here;
  return here;
}

void TextCursor::expect(char c, std::string_view why) {
  if (!take(c)) throw error(fmt::format("expected '{}' {}", c, why));
}

template <class Accept>
std::string_view TextCursor::take_while(Accept accept) {
  skip_space();
  const std::size_t start = at_;
  while (at_ < text_.size() && accept(text_[at_])) ++at_;
  return text_.substr(start, at_ - start);
}

std::string_view TextCursor::word() { return take_while(is_name_character); }
std::string_view TextCursor::number() { return take_while(is_number_character); }

bool TextCursor::take_word(std::string_view wanted) {
  const std::size_t start = mark().offset;
  if (word() == wanted) return true;
  at_ = start;
  return false;
}

void TextCursor::expect_word(std::string_view wanted, std::string_view why) {
  if (!take_word(wanted)) throw error(fmt::format("expected '{}' {}", wanted, why));
}

std::string TextCursor::name(std::string_view what) {
  if (at('"')) return quoted(what);
  const std::string_view plain = word();
  if (plain.empty()) throw error(fmt::format("expected {}", what));
  return std::string(plain);
}

std::string TextCursor::quoted(std::string_view what) {
  const Mark start = mark();
  if (!take('"')) throw error(fmt::format("expected {} in quotes", what));
  std::string result;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
    const char c = text_[at_++];
    result += c == '\\' ? escaped_character() : c;
  }
  if (at_ >= text_.size() || text_[at_] != '"') throw error(start, "these quotes are never closed");
  ++at_;
  return result;
}

char TextCursor::escaped_character() {
  const std::string_view rest = text_.substr(at_);
  if (rest.starts_with('"') || rest.starts_with('\\')) return text_[at_++];
  if (rest.starts_with('n')) return ++at_, '\n';
  if (rest.starts_with('t')) return ++at_, '\t';
  unsigned code = 0;
  if (rest.starts_with('x') && rest.size() >= 3) {
    const auto [end, status] = std::from_chars(rest.data() + 1, rest.data() + 3, code, 16);
    if (status == std::errc() && end == rest.data() + 3) return at_ += 3, static_cast<char>(code);
  }
  throw error(Mark{at_ - 1}, R"(an escape is one of \" \\ \n \t \x41)");
}

}  // namespace superstep::graph
