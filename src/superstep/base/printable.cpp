#include "superstep/base/printable.h"

#include <algorithm>

namespace superstep {

std::string printable(std::string_view text) {
  std::string safe(text);
  std::ranges::replace_if(
      safe, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return safe;
}

}  // namespace superstep
