// Names and strings as the textual form writes them.
#pragma once

#include <string>
#include <string_view>

namespace superstep::graph {

// Letters, digits, '_', '.', '/', ':' and '-': what a name may be made of without quotes.
bool is_name_character(char c);

// The name as it is when it can be; in quotes when it has other characters, is empty, is "_" or looks
// like a comment.
std::string name_text(std::string_view name);

// In double quotes; '"', '\' and control characters escaped (\", \\, \n, \t, \x1b).
std::string quoted(std::string_view text);

}  // namespace superstep::graph
