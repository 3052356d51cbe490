// Text of unknown origin (names in a file) on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace superstep {

// The text with control characters, which could steer a terminal, replaced by '?'.
std::string printable(std::string_view text);
// The same, but its lines stay lines: of whole messages, whose parts may come from anywhere.
std::string printable_lines(std::string_view text);

}  // namespace superstep
