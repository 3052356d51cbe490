// Options of `superstep serve` for who may come in, under which name, and what is written down of it.
#pragma once

#include <CLI/CLI.hpp>

#include "superstep/cli/serve/arguments.h"
#include "superstep/edge/serve.h"

namespace superstep::cli {

void declare_door(CLI::App& command, ServeArguments& a);

// Throw Error where the files are none, or an option needs another.
edge::TlsFiles tls_of(const ServeArguments& a);
edge::DoorSettings door_of(const ServeArguments& a);

// What a hangup has read anew of them. `a` is kept.
void add_renewals(const ServeArguments& a, edge::ServeSettings& settings);

// Addresses that others reach: what they may do there, who reads along, and secrets that others may read.
void warn_of_open_doors(const ServeArguments& a, const edge::ServeSettings& settings);

}  // namespace superstep::cli
