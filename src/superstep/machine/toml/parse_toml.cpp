#include "superstep/machine/toml/parse_toml.h"

#include <fmt/format.h>

#include "superstep/base/error.h"

namespace superstep::machine {
namespace {

// Behind the string that begins at `at`; strings in three quotes go over lines.
std::size_t behind_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool long_one = text.substr(at, 3) == std::string(3, quote);
  for (at += long_one ? 3 : 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"')
      ++at;
    else if (long_one ? text.substr(at, 3) == std::string(3, quote) : text[at] == quote || text[at] == '\n')
      return at + (long_one ? 3 : 1);
  }
  return text.size();
}

void require_shallow(std::string_view text) {
  int brackets = 0, dots = 0, line = 1;  // dots: of the key, or the number, that is being read
  for (std::size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"':
      case '\'': {
        const std::size_t end = behind_string(text, at);
        for (; at < end && at < text.size(); ++at) line += text[at] == '\n';
        --at;
        break;
      }
      case '#': at = std::min(text.find('\n', at), text.size()) - 1; break;
      case '.': ++dots; break;
      case '[':
      case '{':
        ++brackets;
        dots = 0;
        break;
      case ']':
      case '}': --brackets; [[fallthrough]];
      case ',':
      case '=': dots = 0; break;
      case '\n':
        dots = 0;
        ++line;
        break;
      default: break;
    }
    if (brackets > deepest_toml || dots >= deepest_toml)
      throw Error(ErrorCode::bad_file,
                  fmt::format("line {}: is nested deeper than {} levels", line, deepest_toml));
  }
}

}  // namespace

toml::table parse_toml(std::string_view text) {
  require_shallow(text);
  return toml::parse(text);
}

}  // namespace superstep::machine
