#include "superstep/machine/toml/toml_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"

namespace superstep::machine {
namespace {

// Walks through a document, string by string and comment by comment.
class Writer {
 public:
  explicit Writer(std::string_view text) : rest_(text) {}

  std::string run() {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);  // a byte-order mark
    while (!rest_.empty()) {
      if (rest_[0] == '#')
        comment();
      else if (rest_[0] == '"' || rest_[0] == '\'')
        quoted();
      else
        plain(1, "outside of strings and comments");
    }
    return std::move(written_);
  }

 private:
  static bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::bad_file, fmt::format("line {}: {}", line_, message), {},
                "machine files are TOML; docs/machines.md describes them");
  }

  void plain(std::size_t count, const char* where) {
    for (const char c : rest_.substr(0, count)) {
      if (!is_ascii(c)) refuse(fmt::format("a letter that is not ASCII stands {}", where));
      line_ += c == '\n';
    }
    written_ += rest_.substr(0, count);
    rest_.remove_prefix(std::min(count, rest_.size()));
  }

  void comment() {
    const std::string_view line = rest_.substr(0, rest_.find('\n'));
    for (const char c : line) written_ += is_ascii(c) ? c : '?';
    rest_.remove_prefix(line.size());
  }

  // To the closing quotes, or where a string on one line breaks off.
  void quoted() {
    const char c = rest_[0];
    const std::string quotes(rest_.substr(0, 3) == std::string(3, c) ? 3 : 1, c);
    plain(quotes.size(), "");
    while (!rest_.empty()) {
      const bool ends = rest_.starts_with(quotes) || (quotes.size() == 1 && rest_[0] == '\n');
      if (ends) return plain(rest_[0] == c ? quotes.size() : 1, "");
      if (c == '\'')
        plain(1, "in single quotes: use double ones");
      else if (rest_[0] == '\\')
        plain(2, "after a backslash");
      else if (is_ascii(rest_[0]))
        plain(1, "");
      else
        escape();
    }
  }

  // One letter in UTF-8.
  void escape() {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest_[i]); };
    const std::size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC2 ? 2 : 0;
    if (bytes == 0 || rest_.size() < bytes) refuse("this is not UTF-8");
    std::uint32_t letter = byte(0) & (0xFFu >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
      if ((byte(i) & 0xC0) != 0x80) refuse("this is not UTF-8");
      letter = letter << 6 | (byte(i) & 0x3Fu);
    }
    written_ += fmt::format("\\U{:08X}", letter);  // the parser refuses what is no letter
    rest_.remove_prefix(bytes);
  }

  std::string_view rest_;
  std::string written_;
  int line_ = 1;
};

}  // namespace

std::string in_ascii(std::string_view text) { return Writer(text).run(); }

}  // namespace superstep::machine
