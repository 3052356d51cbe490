#include "superstep/facility/run/commands.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/child_process.h"
#include "superstep/base/text.h"
#include "superstep/facility/run/firing_folder.h"

namespace superstep::facility {
namespace {

namespace fs = std::filesystem;

// s between questions to Slurm about a job, which its controller should not hear too often; s that a job
// which Slurm has forgotten is waited for: its status may come late over a shared file system.
constexpr double between_questions = 5, patience = 30;

// As one word of a shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

struct Output {
  int status = 0;
  std::string text;
};

Output output_of(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (!pipe) throw Error(ErrorCode::io, fmt::format("cannot start a shell: {}", std::strerror(errno)));
  Output output;
  std::array<char, 4096> buffer;
  while (const std::size_t read = std::fread(buffer.data(), 1, buffer.size(), pipe))
    output.text.append(buffer.data(), read);
  output.status = ::pclose(pipe);
  while (!output.text.empty() && output.text.back() == '\n') output.text.pop_back();
  return output;
}

bool is_job_number(const std::string& text) {
  return !text.empty() && text.size() < 20 && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

void write_script(const fs::path& folder, const fs::path& at, const ScriptVariables& variables,
                  const std::string& command) {
  std::string text = fmt::format("#!/bin/sh\nFIRING={}\nexport FIRING\n", quoted(folder.string()));
  for (const auto& [name, value] : variables.values)
    text += fmt::format("{0}={1}\nexport {0}\n", name, quoted(value));
  // A job that Slurm ends may be begun again: it leaves no status then.
  text +=
      "ended() { echo $1 > \"$FIRING/status.part\" && mv \"$FIRING/status.part\" \"$FIRING/status\"; }\n"
      "trap '[ -n \"$SLURM_JOB_ID\" ] || ended 143; trap - EXIT; exit 143' TERM\n"
      "trap 'ended $?' EXIT\n";
  text += fmt::format("cd {} || exit 1\n(\n{}\n)\n", quoted(at.string()), command);
  write_file_atomically(folder / "script.sh", text);
}

Commands::~Commands() {
  for (const auto& [firing, running] : running_)
    if (running.process > 0) ::kill(-running.process, SIGTERM);
  for (const auto& [firing, running] : running_)
    if (running.process > 0) ::waitpid(running.process, nullptr, 0);
}

void Commands::start_here(std::uint32_t firing, const fs::path& folder) {
  // In a session of its own, so that all that the command starts can be ended with it.
  const auto started =
      start_process({"setsid", "/bin/sh", "-c",
                     fmt::format("exec /bin/sh {} > {} 2>&1", quoted((folder / "script.sh").string()),
                                 quoted((folder / "log").string()))},
                    folder / "errors");
  if (!started)
    throw Error(ErrorCode::io, fmt::format("cannot start a command: {}", std::strerror(started.error())),
                folder.string());
  running_[firing] = {.folder = folder, .process = *started};
}

std::string Commands::submit(std::uint32_t firing, const fs::path& folder, const std::string& name,
                             const std::vector<std::string>& options) {
  std::string command =
      fmt::format("sbatch --parsable --requeue --job-name={} --output={} --open-mode=append", quoted(name),
                  quoted((folder / "log").string()));
  for (const std::string& option : options) command += " " + quoted(option);
  const Output output = output_of(command + " " + quoted((folder / "script.sh").string()));
  const std::string job =
      output.text.substr(0, output.text.find(';'));  // of a cluster of several: NUMBER;CLUSTER
  if (output.status != 0 || !is_job_number(job))
    throw Error(ErrorCode::io, "sbatch: " + output.text, folder.string(),
                "the partition's sbatch = [...] are its options; is Slurm here (sinfo)?");
  running_[firing] = {.folder = folder, .job = job};
  return job;
}

bool Commands::attach(std::uint32_t firing, const fs::path& folder, const std::string& job) {
  Running running{.folder = folder, .job = job};
  if (!status_of(folder) && (!is_job_number(job) || !job_is_known(running))) return false;
  running_[firing] = std::move(running);
  return true;
}

// Whether Slurm has it in its queue, running or waiting.
bool Commands::job_is_known(Running& running) {
  running.asked = monotonic_seconds();
  const Output output = output_of("squeue --noheader --format=%T --jobs=" + running.job);
  return output.status == 0 && !output.text.empty();
}

std::vector<Commands::Ended> Commands::ended() {
  std::vector<Ended> all;
  const double now = monotonic_seconds();
  for (auto& [firing, running] : running_) {
    if (running.process > 0) {
      int status = 0;
      if (::waitpid(running.process, &status, WNOHANG) != running.process) continue;
      all.push_back({firing, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)});
    } else if (const auto status = status_of(running.folder)) {
      all.push_back({firing, *status});
    } else if (now - running.asked > between_questions) {
      if (job_is_known(running))
        running.missed = 0;
      else if (running.missed == 0)
        running.missed = now;
      if (running.missed > 0 && now - running.missed > patience) all.push_back({firing, -1});
    }
  }
  for (const Ended& one : all) running_.erase(one.firing);
  return all;
}

}  // namespace superstep::facility
