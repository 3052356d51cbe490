// What the folder of a training run tells while the run goes on, and after it: for those who look on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace superstep::run {

enum class RunStatus : std::uint8_t { running, finished, stopped };
const char* name_of(RunStatus status);

// An epoch that was logged, or the part of one that a run of steps ended with.
struct LoggedEpoch {
  double epoch = 0;
  std::int64_t step = 0;
  double seconds = 0;  // since the run began, those of earlier calls included
  // Loss, learning rate, throughput and the metrics of the validation samples, in the log's order.
  std::vector<std::pair<std::string, double>> values;
  // NaN where it has none of that name.
  double value(const std::string& name) const;
};

// Of a log's values: whether it is of one parameter, the length of its gradient.
bool is_of_parameter(const std::string& name);
// Of a log's values: whether it is of the training, and no metric of the validation samples.
bool is_of_training(const std::string& name);

struct RunStory {
  std::filesystem::path folder;
  std::string name;       // what it is called among those that are looked at with it (run_names.h)
  nlohmann::json config;  // config.json: what was asked for; an object with a workload
  double began = 0;       // seconds since 1970, of the first call
  RunStatus status = RunStatus::stopped;
  std::int64_t step = 0;  // the last that the log has, be it an epoch's or the end's
  std::vector<LoggedEpoch> epochs;
  // Of the workload's metrics the first that the log has, which the best weights are kept by; may be empty.
  std::string metric;
};

// Reads all there is; without a name it has the one of a run that is looked at alone. Throws Error:
// not_found, bad_file with the file that is not what a run keeps.
RunStory read_story(const std::filesystem::path& folder, std::string name = {});

// How far a run has come, and where it ends unless a goal or its patience ends it before.
struct RunProgress {
  bool in_steps = false;  // one that was given its steps; else in epochs
  double done = 0;
  double end = 0;  // NaN where that is not known
};
RunProgress progress_of(const RunStory& story);

// Seconds until that end at the pace of the epochs so far; NaN where that is not known, or nothing goes on.
double seconds_left(const RunStory& story);

}  // namespace superstep::run
