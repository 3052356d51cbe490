#include "superstep/edge/learn/child.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/child_process.h"

namespace superstep::edge {
namespace {

constexpr auto between_looks = std::chrono::milliseconds(10);

std::string last_line_of(const std::filesystem::path& file) {
  try {
    std::string text = read_text_file(file);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.substr(text.rfind('\n') + 1);
  } catch (const Error&) {
    return {};
  }
}

// Ended for good before this returns.
void end_child(pid_t child) {
  kill(child, SIGCONT);
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
}

std::string words_for(int status, const std::filesystem::path& errors) {
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {}", WTERMSIG(status));
  return fmt::format("ended with {}: {}", WEXITSTATUS(status), last_line_of(errors));
}

}  // namespace

ChildOutcome run_child(const std::vector<std::string>& command, const std::filesystem::path& errors,
                       const ChildLimits& limits, const std::function<bool()>& should_pause,
                       const std::function<bool()>& should_end) {
  const auto started = start_process(command, errors, Outlives::no);
  if (!started) return {.why = fmt::format("{}: {}", command[0], std::strerror(started.error()))};
  const pid_t child = *started;
  setpriority(PRIO_PROCESS, static_cast<id_t>(child), limits.niceness);
  const Stopwatch watch;
  ChildOutcome outcome;
  double paused_since = -1;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    outcome.seconds = watch.seconds();
    if (ended == child) {
      outcome.done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      if (!outcome.done) outcome.why = words_for(status, errors);
      return outcome;
    }
    const bool over = watch.seconds() - outcome.paused > limits.seconds;
    if (over || should_end()) {
      end_child(child);
      outcome.why = over ? fmt::format("took longer than {:.0f} s", limits.seconds) : "the server ends";
      return outcome;
    }
    const bool pause = should_pause();
    if (pause && paused_since < 0) {
      kill(child, SIGSTOP);
      paused_since = watch.seconds();
    } else if (!pause && paused_since >= 0) {
      kill(child, SIGCONT);
      outcome.paused += watch.seconds() - paused_since;
      paused_since = -1;
    }
    std::this_thread::sleep_for(between_looks);
  }
}

}  // namespace superstep::edge
