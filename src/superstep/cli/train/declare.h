// The options of superstep train, for commands that train by the same.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "superstep/run/train/train_settings.h"

namespace superstep::cli {

// Declares them, and what they do. Gives what, once the command is parsed, a new run with them would be: all
// of its settings, with the threads of this call. The result throws what such a call would be refused with.
std::function<run::TrainSettings()> declare_training(CLI::App& command);

}  // namespace superstep::cli
