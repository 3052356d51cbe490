// TOML of files: one reader of it, with a limit of depth.
#pragma once

#include <toml++/toml.h>

#include <string_view>

namespace superstep::machine {

// Levels of tables and lists in one another, whether by brackets or by dots in keys: each is a call deep when
// the document is given back. Our files have four.
inline constexpr int deepest_toml = 64;

// Throws Error (bad_file) where it is nested deeper, and toml::parse_error. `text` is ASCII (toml_text.h).
toml::table parse_toml(std::string_view text);

}  // namespace superstep::machine
