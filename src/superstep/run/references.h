// What others reach on a task's samples, remembered: a conventional method may take minutes, and its answer
// for the same samples is the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "superstep/run/quality.h"
#include "superstep/run/remembered.h"
#include "superstep/run/task.h"

namespace superstep::run {

// What the references depend on, as one key: the workload, its data as their task describes them, the
// samples, the size and time of every file that the data come from, and this very program.
std::string references_key(const Task& task, const workload::Workload& workload,
                           std::span<const std::int64_t> indices);

class KnownReferences {
 public:
  // Methods that take less are run each time.
  static constexpr double worth_remembering = 1;  // s

  // `path` empty: references.json in the user's cache folder.
  explicit KnownReferences(std::filesystem::path path = {}) : entries_("references", std::move(path)) {}

  // Nothing where they were never run on these samples.
  std::optional<References> find(const Task& task, const workload::Workload& workload,
                                 std::span<const std::int64_t> indices) const;
  // Those that are known, else runs them. Throws Error (interrupted) on Ctrl-C.
  References get(const Task& task, const workload::Workload& workload, std::span<const std::int64_t> indices,
                 ThreadPool& pool);

 private:
  Remembered entries_;
};

}  // namespace superstep::run
