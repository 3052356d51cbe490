// What a study's commands found, kept in its folder a file each as soon as they end: a call that was stopped
// goes on behind them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/record/result.h"
#include "superstep/study/jobs.h"

namespace superstep::study {

struct Kept {
  std::vector<std::string> words;  // of the command, with how long it took
  double seconds = 0, share = 1;   // that it was given
  std::vector<record::Result> results;
  std::string failure;  // why there are none
};

// In one line why a command that was run in a process of its own failed: what it said, without its name.
std::string failure_words(const Error& error);

class KeptJobs {
 public:
  explicit KeptJobs(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // What an earlier call kept; nothing where there is none, where the command was another one, or where it
  // was given less than half of this. Throws Error (io, bad_file) for a damaged file.
  std::optional<Kept> find(const Job& job, double seconds, double share) const;
  void keep(const Job& job, const Kept& kept) const;

 private:
  std::filesystem::path file_of(const Job& job) const { return folder_ / (job.key + ".json"); }
  std::filesystem::path folder_;
};

}  // namespace superstep::study
