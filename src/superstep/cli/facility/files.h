// The files of `place` and `run`, and where tasks must go: options that both have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace superstep::cli {

struct FacilityFiles {
  std::string workflow, facility;
  std::vector<std::string> fixed;  // TASK=PARTITION
};

inline void add_facility_files(CLI::App& command, FacilityFiles& to) {
  command.add_option("workflow", to.workflow, "the workflow: sources, tasks, targets (a TOML file)")
      ->required();
  command.add_option("--on", to.facility, "the facility: sites, links, partitions of machines (a TOML file)")
      ->type_name("FILE")
      ->required();
  command.add_option("--fix", to.fixed, "TASK=PARTITION: this task goes there; may be repeated")
      ->type_name("TASK=PARTITION")
      ->allow_extra_args(false);
}

}  // namespace superstep::cli
