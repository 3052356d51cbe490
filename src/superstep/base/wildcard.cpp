#include "superstep/base/wildcard.h"

namespace superstep {

bool fits(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, star = std::string_view::npos, resume = 0;
  for (std::size_t i = 0; i < name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[i])) {
      ++at, ++i;
    } else if (star != std::string_view::npos) {  // the last star takes one letter more
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace superstep
