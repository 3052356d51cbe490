// Starting this program again as several ranks, under the site's launcher.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace superstep::lab {

struct LaunchSettings {
  int ranks = 1;
  std::vector<std::string> arguments;  // of the program
  std::string launcher = "mpirun";     // found on the PATH
  std::filesystem::path folder;        // for what the ranks write to standard error
};

struct LaunchOutcome {
  int code = 0;
  std::string errors;  // the last lines of standard error
};

// Waits for all ranks. Ctrl-C goes to the launcher, which passes it on. Throws Error: not_found without a
// launcher, unsupported without MPI, interrupted.
LaunchOutcome launch_ranks(const LaunchSettings& settings);

// The same, and throws Error (io) when the ranks did not end well, with the last that they said.
void launch_ranks_or_throw(const LaunchSettings& settings, const std::string& what);

// This process's own words, without the program's name.
std::vector<std::string> own_arguments();

// Replaces this process by the launcher with the same command line, so that standard output and Ctrl-C are as
// the user expects. Throws Error (not_found, unsupported).
[[noreturn]] void replace_by_ranks(int ranks, const std::string& launcher);

}  // namespace superstep::lab
