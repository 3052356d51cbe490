#include "superstep/cli/wing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/child_process.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/cli/help/description_json.h"
#include "superstep/record/environment.h"

namespace superstep::cli {
namespace {

namespace fs = std::filesystem;

fs::path program_of(const std::string& wing) {
  return fs::read_symlink("/proc/self/exe").parent_path() / ("superstep-" + wing);
}

bool is_there(const fs::path& program) { return ::access(program.c_str(), X_OK) == 0; }

// By which a program tells its wing what it was built from.
constexpr const char* started_by = "SUPERSTEP_STARTED_BY";

std::string own_revision() {
  const nlohmann::json program = record::program_record();
  return fmt::format("{} {}", program.at("version").get<std::string>(), program.at("git").dump());
}

// What a program prints, to its end; empty where it cannot be started or does not end well.
std::string printed_by(std::vector<std::string> command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const bool started =
      posix_spawn(&child, command[0].c_str(), &actions, nullptr, words_of(command).data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  std::array<char, 1 << 14> part{};
  for (ssize_t count = 1; started && count != 0;) {
    count = ::read(ends[0], part.data(), part.size());
    if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) break;
  }
  ::close(ends[0]);
  return started && wait_for_process(child) == 0 ? text : std::string();
}

// The wings of the table, each once, but this program's.
std::vector<std::string> other_wings() {
  std::vector<std::string> wings;
  for (const Command& command : commands())
    if (command.wing && (!this_wing().name || std::string(command.wing) != this_wing().name) &&
        std::ranges::find(wings, command.wing) == wings.end())
      wings.emplace_back(command.wing);
  return wings;
}

}  // namespace

void hold_stops(bool hold) {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU}) sigaddset(&stops, signal);
  ::sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &stops, nullptr);
}

bool declare_here(const Command& command, CLI::App& app) {
  if (command.declare) {
    command.declare(app);
    return true;
  }
  const auto& held = this_wing().commands;
  const auto found = std::ranges::find_if(
      held, [&](const WingCommand& each) { return each.name == std::string(command.name); });
  if (found == held.end()) return false;
  found->declare(app);
  return true;
}

void go_on_in(const std::string& wing) {
  const fs::path program = program_of(wing);
  if (!is_there(program))
    throw Error(ErrorCode::not_found, "this command is in a program of its own, which is not there",
                program.string(),
                "'make wings' in the sources of Superstep builds it; installations have it");
  ::setenv(started_by, own_revision().c_str(), 1);
  hold_stops(true);  // until the next program looks for them
  if (interrupted()) throw Error(ErrorCode::interrupted, "before the work began");
  std::vector<std::string> command{program.string()};
  command.insert(command.end(), common().words.begin(), common().words.end());
  ::execv(program.c_str(), words_of(command).data());
  throw Error(ErrorCode::io, fmt::format("cannot be started: {}", std::strerror(errno)), program.string());
}

void tell_of_another_revision() {
  const char* const given = std::getenv(started_by);
  const std::string program = given ? given : "";
  ::unsetenv(started_by);  // not of what this one starts
  if (!program.empty() && program != own_revision())
    tell(fmt::format(
        "superstep: note: superstep-{} is of {}, and superstep of {}\n  'make wings' builds both anew\n",
        this_wing().name ? this_wing().name : "", own_revision(), printable(program)));
}

void complete_by_wings(CommandText& program) {
  for (const std::string& wing : other_wings()) {
    const fs::path beside = program_of(wing);
    if (!is_there(beside)) continue;
    for (CommandText& described :
         commands_from_json(parse_json(printed_by({beside.string(), asked_to_describe}))))
      for (CommandText& command : program.commands)
        if (command.path == described.path) command = std::move(described);
  }
}

void describe_this_wing(const CommandText& program) {
  std::vector<CommandText> held;
  for (const WingCommand& command : this_wing().commands)
    if (const CommandText* text = find_command(program, command.name)) held.push_back(*text);
  fmt::print("{}\n", to_json(held).dump());
}

}  // namespace superstep::cli
