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
  nlohmann::json config;  // config.json: what was asked for
  double began = 0;       // seconds since 1970, of the first call
  RunStatus status = RunStatus::stopped;
  std::vector<LoggedEpoch> epochs;
  // Of the workload's metrics the first that the log has, which the best weights are kept by; may be empty.
  std::string metric;
};

// "mlp-1" of runs/mlp-1 and of runs/mlp-1/.
std::string name_of_folder(const std::filesystem::path& folder);

// Reads all there is. Throws Error: not_found, bad_file.
RunStory read_story(const std::filesystem::path& folder);

}  // namespace superstep::run
