// A process that works beside the server, with less right to the processors.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace superstep::edge {

struct ChildOutcome {
  bool done = false;  // it ended by itself, with 0
  std::string why;    // not: in words
  double seconds = 0, paused = 0;
};

struct ChildLimits {
  double seconds = 60;  // of its own time
  int niceness = 10;    // gives way to whoever serves
};

// Runs `command` and waits for its end. While `should_pause` says so it stands still; at its limit, or when
// `should_end` says so, it is ended. Its standard error goes to `errors`.
ChildOutcome run_child(const std::vector<std::string>& command, const std::filesystem::path& errors,
                       const ChildLimits& limits, const std::function<bool()>& should_pause,
                       const std::function<bool()>& should_end);

}  // namespace superstep::edge
