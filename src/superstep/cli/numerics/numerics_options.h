// The options that choose an arithmetic, which commands that run models share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace superstep::cli {

// --numerics and --numerics-of, which make `target` the one that computes so; declared after --on. Parsing
// throws Error (invalid_argument) on an arithmetic that there is not, and where another target than the cpu
// was named.
void add_numerics_options(CLI::App& command, std::string& target);

// What such a target was asked for by --numerics; empty for other targets.
std::string numerics_of_target(std::string_view target);

// superstep list numerics.
void list_numerics();

}  // namespace superstep::cli
