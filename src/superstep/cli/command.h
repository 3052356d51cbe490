// The subcommands. Each file of this room adds one: it declares its options on a CLI::App and sets the
// callback that does the work. Errors are thrown (superstep::Error) and shown by main.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "superstep/base/metric.h"

namespace superstep::cli {

// Options that every subcommand has; declared by main, valid when a callback runs.
struct Common {
  std::string json;         // file to write the result object to; empty for none
  bool for_others = false;  // results without the machine's name and full paths
  bool quiet = false;       // no progress bars, no tables
  std::string progress;  // how progress is shown: none, line, bar; empty: bar on a terminal, line elsewhere
  int threads = 0;       // 0: all processors the process may use
  std::vector<std::string> words;      // of the call, as they were given
  std::vector<std::string> handed_on;  // what follows "--", where the command hands it on (Command::hands_on)
};
Common& common();
int thread_count();  // common().threads, or the processors there are

// Words on standard error, which may be closed, or on a full disk: what is told beside the work never ends
// it.
template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

struct Command {
  const char* name;
  const char* summary;  // one line, shown by `superstep --help`
  void (*declare)(CLI::App& command);
  bool has_result = true;      // takes --json
  bool hands_on = false;       // what follows "--" is for the program that it starts
  const char* wing = nullptr;  // that declares it (cli/wing.h); null: `declare` does
  const char* group = "";      // of the table, under whose title `superstep --help` shows it
};

// What a number must be (base/option_range.h). Every option that takes a number has one of these: infinity,
// nan and texts that only begin with a number are refused by all.
CLI::Validator positive();
CLI::Validator not_negative();
CLI::Validator number_from(double low, double high);
CLI::Validator whole_number_from(std::int64_t low,
                                 std::int64_t high = std::numeric_limits<std::int64_t>::max());
CLI::Validator bytes();  // "200M", "2G"

const std::vector<Command>& commands();  // cli/commands.cpp: the table

}  // namespace superstep::cli
