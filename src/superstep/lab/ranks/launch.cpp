#include "superstep/lab/ranks/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/child_process.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::lab {
namespace {

constexpr std::size_t lines_kept = 12;

std::vector<std::string> command_of(const LaunchSettings& settings) {
  std::error_code failure;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", failure).string();
  // Ranks may be more than cores, and each has threads of its own: the launcher is not to pin them.
  std::vector<std::string> command{
      settings.launcher, "-n", std::to_string(settings.ranks), "--oversubscribe", "--bind-to", "none", self};
  command.insert(command.end(), settings.arguments.begin(), settings.arguments.end());
  return command;
}

// Open MPI asks the superuser twice whether that is meant; who starts Superstep as one has answered.
void allow_superuser() {
  if (geteuid() != 0) return;
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

void prepare_launch() {
  if (!run::has_ranks())
    throw Error(ErrorCode::unsupported, "this program was built without MPI", "ranks",
                "install an MPI library with its headers (Debian: libopenmpi-dev) and configure again");
  allow_superuser();
}

[[noreturn]] void refuse_launcher(const std::string& launcher, int failure) {
  throw Error(ErrorCode::not_found, fmt::format("cannot be started: {}", std::strerror(failure)), launcher,
              "install the launcher of an MPI library (Debian: openmpi-bin), or name yours with --launcher");
}

pid_t start(const std::vector<std::string>& command, const std::filesystem::path& errors) {
  const auto child = start_process(command, errors);
  if (!child) refuse_launcher(command[0], child.error());
  return *child;
}

std::string last_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n'))
    if (!line.empty() && line.find_first_not_of("-=") != std::string::npos) lines.push_back(line);
  if (lines.size() > lines_kept) lines.erase(lines.begin(), lines.end() - lines_kept);
  return join(lines, "\n  ");
}

}  // namespace

std::vector<std::string> own_arguments() {
  std::vector<std::string> words = split(read_text_file("/proc/self/cmdline"), '\0');
  if (!words.empty() && words.back().empty()) words.pop_back();
  if (!words.empty()) words.erase(words.begin());
  return words;
}

LaunchOutcome launch_ranks(const LaunchSettings& settings) {
  prepare_launch();
  const std::filesystem::path errors = settings.folder / "stderr.txt";
  const int code = wait_for_process(start(command_of(settings), errors));
  if (interrupted()) throw Error(ErrorCode::interrupted, "with its ranks");
  return {code, last_lines(read_text_file(errors))};
}

void launch_ranks_or_throw(const LaunchSettings& settings, const std::string& what) {
  const LaunchOutcome outcome = launch_ranks(settings);
  if (outcome.code != 0)
    throw Error(outcome.code == 2 ? ErrorCode::invalid_argument : ErrorCode::io,
                fmt::format("the ranks ended with {}:\n  {}", outcome.code, outcome.errors), what);
}

void replace_by_ranks(int ranks, const std::string& launcher) {
  prepare_launch();
  const std::vector<std::string> command =
      command_of({.ranks = ranks, .arguments = own_arguments(), .launcher = launcher, .folder = {}});
  execvp(launcher.c_str(), words_of(command).data());
  refuse_launcher(launcher, errno);
}

}  // namespace superstep::lab
