// Text of unknown origin (names in a file) on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace superstep {

// The text with control characters, which could steer a terminal, replaced by '?'.
std::string printable(std::string_view text);

}  // namespace superstep
