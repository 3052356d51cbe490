#include "superstep/lab/health/findings.h"

#include <fmt/format.h>

#include "superstep/base/text.h"

namespace superstep::lab {
namespace {

// Chosen: what the zoo's larger forms and a build of the peers take; below it trainings are refused for
// memory.
constexpr double little_memory = 2e9;
// Chosen: records and plans of some weeks.
constexpr double little_room = 1e9;
// Connections of `serve` (1,024 by default), files of a data set and what the program has open by itself.
constexpr std::uint64_t enough_files = 4096;
// Chosen: half of what the system gives by default.
constexpr std::uint64_t enough_stack = std::uint64_t{4} << 20;
// A processor in so many is at work for others: figures vary by more than the protocol's noise.
constexpr double busy_share = 0.25;

Finding threads(const HostFacts& facts) {
  Finding finding{"threads", fmt::format("{} of {} processors", facts.threads, facts.processors)};
  if (facts.of_group && *facts.of_group < facts.processors)
    finding.found += fmt::format("; the group of this process allows {}", *facts.of_group);
  if (facts.threads == facts.usable) return finding;
  finding.health = Health::note;
  finding.advice =
      fmt::format("SLURM_CPUS_PER_TASK or OMP_NUM_THREADS says {}; --threads {} takes all that it may",
                  facts.threads, facts.usable);
  return finding;
}

Finding instructions(const HostFacts& facts) {
  Finding finding{"instruction set", facts.instruction_set};
  if (!facts.given_away_set.empty()) {
    finding.health = Health::note;
    finding.advice =
        fmt::format("this processor has {}: build the program here, or with -DSUPERSTEP_KERNELS=all",
                    facts.given_away_set);
    return finding;
  }
  if (facts.instruction_set == facts.widest_instruction_set) return finding;
  finding.health = Health::note;
  finding.advice =
      fmt::format("this processor has {}: unset SUPERSTEP_ISA to use it", facts.widest_instruction_set);
  return finding;
}

Finding memory(const HostFacts& facts) {
  Finding finding{"memory", fmt::format("{} of {} available", format_bytes(facts.available_bytes),
                                        format_bytes(facts.memory_bytes))};
  if (facts.available_bytes == 0) finding.found = format_bytes(facts.memory_bytes) + ", available unknown";
  if (facts.available_bytes == 0 || facts.available_bytes >= little_memory) return finding;
  finding.health = Health::note;
  finding.advice = "larger models will be refused: end other programs, or ask the batch system for more";
  return finding;
}

Finding load(const HostFacts& facts) {
  if (!facts.load) return {"other work", "unknown"};
  Finding finding{"other work", fmt::format("load {:.1f} on {} processors", *facts.load, facts.processors)};
  if (*facts.load <= busy_share * facts.processors) return finding;
  finding.health = Health::note;
  finding.advice = "measure when the machine is quiet: results say how busy it was";
  return finding;
}

Finding huge_pages(const HostFacts& facts) {
  Finding finding{"huge pages", facts.huge_pages.empty() ? "unknown" : facts.huge_pages};
  if (facts.huge_pages.find("[never]") == std::string::npos) return finding;
  finding.health = Health::note;
  finding.advice = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  return finding;
}

Finding governor(const HostFacts& facts) {
  Finding finding{"clock", facts.governor.empty() ? "no governor (a virtual machine, say)" : facts.governor};
  if (facts.governor != "powersave") return finding;
  finding.health = Health::note;
  finding.advice = "for steady figures, as root: cpupower frequency-set -g performance";
  return finding;
}

std::string words(const std::optional<std::uint64_t>& limit) {
  return limit ? format_count(static_cast<double>(*limit)) : "no limit";
}

Finding open_files(const HostFacts& facts) {
  Finding finding{"open files", words(facts.open_files)};
  if (!facts.open_files || *facts.open_files >= enough_files) return finding;
  finding.health = Health::note;
  finding.advice = fmt::format("serve may need more connections: ulimit -n {} (allowed here: {})",
                               enough_files, words(facts.most_open_files));
  return finding;
}

Finding stack(const HostFacts& facts) {
  Finding finding{"stack",
                  facts.stack_bytes ? format_bytes(static_cast<double>(*facts.stack_bytes)) : "no limit"};
  if (!facts.stack_bytes || *facts.stack_bytes >= enough_stack) return finding;
  finding.health = Health::note;
  finding.advice = "ulimit -s 8192: deep graphs may not compile";
  return finding;
}

Finding folder(const char* subject, const FolderFacts& facts, const char* advice) {
  Finding finding{subject, facts.path};
  if (!facts.writable) {
    finding.health = Health::wrong;
    finding.found += " cannot be written";
    finding.advice = advice;
    return finding;
  }
  if (facts.free_bytes > 0) finding.found += fmt::format(", {} free", format_bytes(facts.free_bytes));
  if (facts.free_bytes == 0 || facts.free_bytes >= little_room) return finding;
  finding.health = Health::note;
  finding.advice = "make room, or set SUPERSTEP_HOME to a folder of another file system";
  return finding;
}

Finding ranks(const HostFacts& facts) {
  if (!facts.has_ranks && facts.launched > 1)
    return {"ranks", fmt::format("{} processes were started, and the program has no MPI", facts.launched),
            Health::wrong, "build it where MPI's headers are (libopenmpi-dev), or start one process"};
  if (!facts.has_ranks)
    return {"ranks", "built without MPI", Health::note, "build it where MPI's headers are (libopenmpi-dev)"};
  Finding finding{"ranks",
                  "MPI, " + (facts.launchers.empty() ? "no launcher found" : join(facts.launchers, ", "))};
  if (!facts.launchers.empty()) return finding;
  finding.health = Health::note;
  finding.advice = "load the site's MPI module, or install openmpi-bin, to train over several processes";
  return finding;
}

Finding compiler(const HostFacts& facts) {
  Finding finding{"C compiler", facts.has_compiler ? "gcc" : "none"};
  if (facts.has_compiler) return finding;
  finding.health = Health::note;
  finding.advice = "openmp and popc translate C for gcc: install it to use them";
  return finding;
}

}  // namespace

const char* name_of(Health health) {
  return health == Health::fine ? "fine" : health == Health::note ? "note" : "wrong";
}

std::vector<Finding> findings(const HostFacts& facts) {
  return {{"processor", facts.processor.empty() ? "unknown" : facts.processor},
          threads(facts),
          instructions(facts),
          memory(facts),
          load(facts),
          huge_pages(facts),
          governor(facts),
          open_files(facts),
          stack(facts),
          folder("records", facts.data, "set SUPERSTEP_HOME to a folder that you may write"),
          folder("cache", facts.cache, "set SUPERSTEP_HOME or XDG_CACHE_HOME to a folder that you may write"),
          ranks(facts),
          compiler(facts)};
}

}  // namespace superstep::lab
