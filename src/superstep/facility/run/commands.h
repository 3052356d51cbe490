// Commands of firings: scripts that run on this computer, or as jobs of Slurm.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace superstep::facility {

struct ScriptVariables {
  std::vector<std::pair<std::string, std::string>> values;  // names are letters, digits and '_'
};

// script.sh in `folder`: goes to `at`, sets the variables, runs the command, leaves its exit status in the
// file `status` once it is over, however it ended.
void write_script(const std::filesystem::path& folder, const std::filesystem::path& at,
                  const ScriptVariables& variables, const std::string& command);

// Those that are under way. What runs on this computer ends with this object.
class Commands {
 public:
  Commands() = default;
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // Throws Error (io, not_found).
  void start_here(std::uint32_t firing, const std::filesystem::path& folder);
  // The job's number. Throws Error (io) with what sbatch said.
  std::string submit(std::uint32_t firing, const std::filesystem::path& folder, const std::string& name,
                     const std::vector<std::string>& options);
  // A job that a call before this one has submitted; false: Slurm knows it no more, and it left no status.
  bool attach(std::uint32_t firing, const std::filesystem::path& folder, const std::string& job);

  bool any() const { return !running_.empty(); }
  struct Ended {
    std::uint32_t firing;
    int status;  // 128 + a signal's number; -1: the job is gone without one
  };
  // Those that have ended since.
  std::vector<Ended> ended();

 private:
  struct Running {
    std::filesystem::path folder;
    pid_t process = 0;  // 0: a job
    std::string job;
    double asked = 0, missed = 0;  // s of the clock: Slurm was asked about it; it was first not known
  };
  bool job_is_known(Running& running);

  std::map<std::uint32_t, Running> running_;
};

}  // namespace superstep::facility
