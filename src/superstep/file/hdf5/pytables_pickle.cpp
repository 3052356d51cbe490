#include <string_view>

#include "superstep/base/error.h"
#include "superstep/file/hdf5/pytables.h"

namespace superstep::data {
namespace {

// A string of Python between quotes, its simple escapes undone.
std::string unquoted(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

}  // namespace

// Protocol 0 is text, an instruction and its line: "V..." is a Unicode string, "S'...'" a byte string, "p.."
// numbers what was made, "a" appends to the list that "(l" began, "." ends. Several may share a line.
std::vector<std::string> unpickle_strings(const std::string& pickled, const std::string& where) {
  if (!pickled.starts_with("(l") && !pickled.starts_with("]"))
    throw Error(ErrorCode::bad_file, "a list of column names is not pickled by protocol 0", where);
  std::vector<std::string> strings;
  std::string_view rest = pickled;
  rest.remove_prefix(rest.starts_with("]") ? 1 : 2);
  while (!rest.empty() && rest[0] != '.') {
    const char instruction = rest[0];
    rest.remove_prefix(1);
    if (instruction == 'a' || instruction == '\n') continue;
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (instruction == 'V') strings.emplace_back(line);
    if (instruction == 'S' && line.size() >= 2) strings.push_back(unquoted(line.substr(1, line.size() - 2)));
  }
  return strings;
}

// Without the numbers for later use, so that five thousand names stay below the 64 KB of an attribute.
std::string pickle_strings(const std::vector<std::string>& strings) {
  std::string text = "(l";
  for (const std::string& each : strings) text += "V" + each + "\na";
  return text + ".";
}

}  // namespace superstep::data
