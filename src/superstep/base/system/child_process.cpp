#include "superstep/base/system/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include "superstep/base/option_range.h"
#include "superstep/base/system/interrupt.h"

extern char** environ;

namespace superstep {
namespace {

constexpr const char* parent_variable = "SUPERSTEP_ENDS_WITH";

}  // namespace

std::vector<char*> words_of(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return words;
}

std::expected<pid_t, int> start_process(const std::vector<std::string>& command,
                                        const std::filesystem::path& errors, Outlives outlives) {
  const std::vector<char*> words = words_of(command);
  const std::string parent = fmt::format("{}={}", parent_variable, getpid());
  std::vector<char*> variables;
  for (char** variable = environ; *variable; ++variable) variables.push_back(*variable);
  if (outlives == Outlives::no) variables.push_back(const_cast<char*>(parent.c_str()));
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  // What libraries have open (HDF5, a file that is being written) would stay locked as long as the child
  // lives.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return std::unexpected(failure);
  return child;
}

void heed_parent() {
  const char* text = std::getenv(parent_variable);
  const auto parent = text ? whole_number(text) : std::nullopt;
  unsetenv(parent_variable);  // not meant for what this program starts
  if (!parent) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);    // heard even while it is paused
  if (getppid() != *parent) _exit(1);  // it has ended before that
}

int wait_for_process(pid_t child) {
  const HoldEnd until_it_has_ended;  // it stops by itself, and what it did is still to be read
  bool told = false;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0 && errno != EINTR) return 127;
    if (interrupted() && !std::exchange(told, true)) kill(child, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace superstep
