// Starting another program.
#pragma once

#include <sys/types.h>

#include <expected>
#include <filesystem>
#include <string>
#include <vector>

namespace superstep {

// The words of a command as the system calls want them, ended by a null. They point into `command`.
std::vector<char*> words_of(const std::vector<std::string>& command);

// Starts `command[0]` (sought in PATH where it has no slash) with the arguments behind it. What it writes to
// the standard error goes to the file `errors`, which is made anew and readable by its owner alone; what it
// prints goes nowhere. The number of the process, or the system's error number.
// `Outlives::no`: for this program itself, which ends when we do, however we end (heed_parent).
enum class Outlives : bool { no, yes };
std::expected<pid_t, int> start_process(const std::vector<std::string>& command,
                                        const std::filesystem::path& errors,
                                        Outlives outlives = Outlives::yes);

// A program that was started by Outlives::no is killed with who started it; others go on. Call it first in
// main.
void heed_parent();

// Waits until it has ended; hands Ctrl-C on to it, once, as SIGTERM. Its exit code, or 128 and the number of
// the signal that ended it.
int wait_for_process(pid_t child);

}  // namespace superstep
