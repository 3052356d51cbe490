// What each file of a subcommand defines, for the table in commands.cpp.
#pragma once

#include <CLI/CLI.hpp>

namespace superstep::cli {

void declare_baseline(CLI::App& command);
void declare_generate(CLI::App& command);

}  // namespace superstep::cli
