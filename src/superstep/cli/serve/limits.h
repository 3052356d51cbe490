// Options of `superstep serve` for how much: queues and batches, memory, connections, times.
#pragma once

#include <CLI/CLI.hpp>

#include "superstep/cli/serve/arguments.h"
#include "superstep/edge/serve.h"

namespace superstep::cli {

void declare_queue(CLI::App& command, ServeArguments& a);
void declare_limits(CLI::App& command, ServeArguments& a);

edge::BatcherSettings batcher_of(const ServeArguments& a);

}  // namespace superstep::cli
