#include "superstep/lab/bench/peers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/system/child_process.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/lab/bench/peer_scripts.h"

extern char** environ;

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

constexpr int look_milliseconds = 50;  // how often it is asked whether the user wants to stop (chosen)

constexpr std::size_t read_at_once = 4096;  // bytes (chosen): answers are a line each

fs::path make_folder() {
  std::string folder = (fs::temp_directory_path() / "superstep-peer-XXXXXX").string();
  if (!mkdtemp(folder.data()))
    throw Error(ErrorCode::io, fmt::format("cannot make a folder: {}", std::strerror(errno)), folder);
  return folder;
}

void write_scripts(const fs::path& folder) {
  for (const PeerScript& script : peer_scripts()) {
    std::ofstream file(folder / script.name);
    file << script.text << std::flush;
    if (!file) throw Error(ErrorCode::io, "cannot be written", (folder / script.name).string());
  }
}

std::vector<std::string> arguments_of(const PeerSettings& settings) {
  std::vector<std::string> words{fs::absolute(settings.file).string()};
  words.insert(words.end(),
               {"--engine", settings.engine, "--batch", std::to_string(settings.batch), "--threads",
                std::to_string(settings.threads), "--precision", settings.precision});
  for (const std::string& shape : settings.shapes) words.insert(words.end(), {"--shape", shape});
  return words;
}

}  // namespace

const std::vector<std::string>& peer_engines() {
  static const std::vector<std::string> engines{"onnxruntime", "openvino"};
  return engines;
}

Peer::Peer(const PeerSettings& settings)
    : Peer(settings.python, settings.engine, "file_peer.py", arguments_of(settings)) {}

Peer::Peer(const std::string& python, std::string name, const std::string& script,
           const std::vector<std::string>& arguments)
    : Peer(std::move(name)) {
  folder_ = make_folder();
  write_scripts(folder_);
  std::vector<std::string> command{python, (folder_ / script).string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (!start(command)) return;
  const std::string first = read_line();
  const std::string kind = first.substr(0, first.find(' '));
  const std::string rest = first.size() > kind.size() ? first.substr(kind.size() + 1) : "";
  const nlohmann::json said = parse_json(kind == "ready" ? rest : "");
  if (said.is_object() && said.contains("contender") && said["contender"].is_string())
    name_ = said["contender"].get<std::string>();
  else
    why_not_ = kind == "absent" || kind == "error" ? fmt::format("{}: {}", kind, rest)
                                                   : fmt::format("absent: {} ended without a word", python);
}

Peer::~Peer() {
  if (to_ >= 0) close(to_);
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

// Both ways over one socket, on which a peer that has ended raises no signal.
bool Peer::start(const std::vector<std::string>& command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ErrorCode::io, fmt::format("cannot talk to a process: {}", std::strerror(errno)), engine_);
  to_ = ends[0];
  const std::vector<char*> words = words_of(command);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int failure = posix_spawnp(&process_, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failure == 0) return true;
  process_ = -1;
  why_not_ = fmt::format("absent: {} cannot be started: {}", command[0], std::strerror(failure));
  return false;
}

std::string Peer::read_line() {
  for (;;) {
    if (const std::size_t end = read_.find('\n'); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    if (interrupted()) throw Error(ErrorCode::interrupted, "while waiting for a peer", engine_);
    pollfd waiting{.fd = to_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, look_milliseconds) <= 0) continue;
    std::array<char, read_at_once> bytes;
    const ssize_t count = read(to_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    read_.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

std::string Peer::ask(const std::string& line) {
  const std::string text = line + "\n";
  if (send(to_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) return {};
  return read_line();
}

double Peer::run(std::int64_t calls) {
  const std::string answer = ask(fmt::format("run 1 {}", calls));
  std::istringstream words(answer);
  std::string kind;
  double seconds = 0;
  if (!(words >> kind >> seconds) || kind != "times")
    throw Error(ErrorCode::io, answer.empty() ? "the peer ended" : fmt::format("the peer said '{}'", answer),
                engine_, "leave it out (--peers, --against)");
  return seconds * static_cast<double>(calls);
}

}  // namespace superstep::lab
