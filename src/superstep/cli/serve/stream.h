// Options of `superstep serve` for frames of a detector: from where, what is made of them, what is learnt.
#pragma once

#include <CLI/CLI.hpp>

#include "superstep/cli/serve/arguments.h"
#include "superstep/edge/serve.h"

namespace superstep::cli {

void declare_stream(CLI::App& command, ServeArguments& a);
void declare_learning(CLI::App& command, ServeArguments& a);

// The stream and what is made of its scans. Throws Error (invalid_argument) for options that mean nothing
// without another one.
void set_stream(const ServeArguments& a, edge::ServeSettings& settings);

}  // namespace superstep::cli
