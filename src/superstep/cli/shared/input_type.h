// --input-type, as `predict`, `advise` and `sweep` have it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace superstep::cli {

void add_input_type_option(CLI::App& command, std::string& type);

// Bytes of an element of the inputs on the host's link; 0: the precision's.
int input_bytes_of(const std::string& type);

}  // namespace superstep::cli
