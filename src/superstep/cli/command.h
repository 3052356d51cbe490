// The subcommands. Each file of this room adds one: it declares its options on a CLI::App and sets the
// callback that does the work. Errors are thrown (superstep::Error) and shown by main.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "superstep/base/metric.h"

namespace superstep::cli {

// Options that every subcommand has; declared by main, valid when a callback runs.
struct Common {
  std::string json;    // file to write the result object to; empty for none
  bool quiet = false;  // no progress bars, no tables
  int threads = 0;     // 0: all processors the process may use
};
Common& common();
int thread_count();  // common().threads, or the processors there are

struct Command {
  const char* name;
  const char* summary;  // one line, shown by `superstep --help`
  void (*declare)(CLI::App& command);
  bool has_result = true;  // takes --json
};

// What a number must be; the message says so, where CLI11's names the whole range of doubles.
CLI::Validator positive();
CLI::Validator not_negative();

const std::vector<Command>& commands();  // cli/commands.cpp: the table

}  // namespace superstep::cli
