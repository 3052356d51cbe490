#include "superstep/base/printable.h"

#include <algorithm>

namespace superstep {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::string printable(std::string_view text) {
  std::string safe(text);
  std::ranges::replace_if(safe, is_control, '?');
  return safe;
}

std::string printable_lines(std::string_view text) {
  std::string safe(text);
  std::ranges::replace_if(
      safe, [](char c) { return c != '\n' && is_control(c); }, '?');
  return safe;
}

}  // namespace superstep
