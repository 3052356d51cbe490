// What the program finds on the machine that it runs on, as far as it decides what works and how fast.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace superstep::lab {

struct FolderFacts {
  std::string path;
  bool writable = false;
  double free_bytes = 0;  // for this user; 0 where nobody knows
};

// Texts are empty, numbers absent, where the system does not tell.
struct HostFacts {
  std::string processor;
  int processors = 1;                  // of the machine, that are on
  int usable = 1;                      // available_processors()
  std::optional<int> of_group;         // whole processors that a container or a batch system's group allows
  int threads = 1;                     // that a command takes without --threads
  std::string instruction_set;         // in force
  std::string widest_instruction_set;  // of this processor and this program
  std::string given_away_set;  // wider, of this processor alone (base/system/built_kernels.h); empty: none
  double memory_bytes = 0, available_bytes = 0;
  std::optional<double> load;  // mean number of processes that wanted a processor in the last minute
  std::string huge_pages;      // "always [madvise] never"
  std::string governor;        // "powersave"
  std::optional<std::uint64_t> open_files, most_open_files;  // soft and hard limit; absent: none
  std::optional<std::uint64_t> stack_bytes;                  // soft limit; absent: none
  FolderFacts data, cache;                                   // where records and plans are kept
  bool has_ranks = false;                                    // built with MPI
  int launched = 1;                                          // processes that a launcher says it started
  std::vector<std::string> launchers;                        // "mpirun", "srun": those that are found
  bool has_compiler = false;                                 // gcc, which superstep-cc and popc call
};

HostFacts host_facts();

}  // namespace superstep::lab
