#include "superstep/graph/text_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace superstep::graph {

bool is_name_character(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/' || c == ':' || c == '-';
}

std::string name_text(std::string_view name) {
  const bool plain = !name.empty() && name != "_" && std::ranges::all_of(name, is_name_character);
  const bool comment = name.starts_with("//");
  return plain && !comment ? std::string(name) : quoted(name);
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (code < 0x20 || code == 0x7f)
      result += fmt::format("\\x{:02x}", code);
    else
      result += c;
  }
  return result + "\"";
}

}  // namespace superstep::graph
