// Options from a file: `option = value` in TOML for a command that has --config, and the file that repeats a
// call.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace superstep::cli {

// Declares --config; `text` is the file's name.
void add_config_option(CLI::App& command, std::string& text);

// The words of the call with the file's options behind the command, those that the call has itself left out:
// the command line overrides the file. The command's positional argument is set by its name, unless the call
// has one. Unchanged where no --config is. Throws Error: bad_file (no TOML), invalid_argument (an option that
// the command has not, or that no file may set; a value that is none).
std::vector<std::string> with_config_file(std::vector<std::string> words, const CLI::App& program);

// What was given to a command that has been parsed, in the order of its help, as such a file; without
// `left_out` (by name, "--out").
std::string config_text(const CLI::App& command, const std::vector<std::string>& left_out);

}  // namespace superstep::cli
