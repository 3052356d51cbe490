// How many processors this process may use, by everything that limits them.
#pragma once

#include <filesystem>
#include <optional>

namespace superstep {

// Whole processors that the process's control group and those above it allow (cpu.max; version 1:
// cpu.cfs_quota_us), at least one: a thread more would be stopped in every period. Nothing where there is no
// limit. `root` holds proc/ and sys/; tests have their own.
std::optional<int> processors_of_group(const std::filesystem::path& root = "/");

// Threads to use where nobody says how many: available_processors() (base/thread_pool.h), or what a batch
// system or the user's environment gives a process if that is less: SLURM_CPUS_PER_TASK, OMP_NUM_THREADS.
int default_threads();

}  // namespace superstep
