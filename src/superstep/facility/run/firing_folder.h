// The folder of one firing of a run: what it takes, the script that does it, what that says and gives.
//
//   work/TASK/NUMBER/firing.json   items taken, when it began, the job that does it
//                    script.sh     the command with its variables; log: what it printed; status: how it ended
//                    out           the item that it gives
//                    done.json     when it ended, and where the time of its item went
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "superstep/facility/simulate/world.h"

namespace superstep::facility {

// An item by who gave it: the third of a source, the twelfth of a task.
struct ItemName {
  bool of_source = false;
  std::size_t producer = 0, number = 0;
  auto operator<=>(const ItemName&) const = default;
};

struct FiringRecord {
  std::size_t task = 0, number = 0;
  std::vector<std::pair<Taken, ItemName>> taken;
  double cut = 0, begun = 0;
  std::string job;  // of Slurm; empty: none
  bool emulated = false;

  // When it is done.
  std::optional<double> ended;
  Course course;
};

std::filesystem::path firing_folder(const std::filesystem::path& run, const std::string& task,
                                    std::size_t number);

void write_firing(const std::filesystem::path& folder, const FiringRecord& record);
void write_done(const std::filesystem::path& folder, double ended, const Course& course);
// Null where there is no firing.json yet. Throws Error (bad_file).
std::optional<FiringRecord> read_firing(const std::filesystem::path& folder);

// How its script ended; nothing: it has not.
std::optional<int> status_of(const std::filesystem::path& folder);

}  // namespace superstep::facility
