// Directives that Clang 19 does not read, and would explain by other words.
#pragma once

#include <string>

namespace superstep_cc {

// Of preprocessed text. False: refused, with file and line.
bool scan_directives(const std::string& text);

}  // namespace superstep_cc
