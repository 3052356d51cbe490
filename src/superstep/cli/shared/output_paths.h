// Where a command will write is tried before it works: hours of work are not lost to a folder that is
// missing.
#pragma once

#include <CLI/CLI.hpp>

namespace superstep::cli {

// Has every option of the command, and of its own commands, that names an output looked at as soon as the
// command line is read; told by their names (--out, --output, --json ...) and by their type, where DIR is a
// folder. Throws Error (not_found, io) then.
void try_output_paths(CLI::App& command);

}  // namespace superstep::cli
