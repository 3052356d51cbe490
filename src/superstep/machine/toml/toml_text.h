// TOML without letters beyond ASCII, for a parser whose behaviour they leave undefined.
#pragma once

#include <string>
#include <string_view>

namespace superstep::machine {

// The same document in ASCII: letters beyond it become escapes in strings in double quotes, and '?' in
// comments. toml++ 3.3 classes other letters by tables that run into undefined behaviour for most of them.
// Throws Error (bad_file) naming the line where such a letter stands elsewhere, or what stands there is not
// UTF-8.
std::string in_ascii(std::string_view text);

}  // namespace superstep::machine
