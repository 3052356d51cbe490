// Names with * and ? in them.
#pragma once

#include <string_view>

namespace superstep {

// Whether the name is what the pattern says, in which * is any letters, also none, and ? is one.
bool fits(std::string_view pattern, std::string_view name);

}  // namespace superstep
