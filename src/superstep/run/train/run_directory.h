// The folder of one training run.
//
//   config.json       what was asked for: workload, data, batch, precision, optimiser, schedule, seed
//   environment.json  the machine and the program (environment.h), a record a sitting
//   metrics.jsonl     a line an event: {"step", "epoch", "seconds", "name": value, ...}
//   checkpoints/      step-NNNNNNNN.safetensors, the newest two
//   best.safetensors  the checkpoint with the best quality so far
//   model.onnx        the trained model, as served
//   lock              held by the process that writes here, with its number and host
//   (base/system/folder_lock.h)
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace superstep::run {

// The lines of a run's log (metrics.jsonl); none where there is no log. What is no object is left out: the
// last line of a killed run may be half.
std::vector<nlohmann::json> log_lines(const std::filesystem::path& log);

class RunDirectory {
 public:
  // Makes a new run's folder and writes config.json; throws Error (invalid_argument) when it holds a run
  // already, with the way to resume it.
  static RunDirectory create(const std::filesystem::path& folder, const nlohmann::json& config);
  // What create() would throw of a folder that holds a run already.
  static void refuse_existing(const std::filesystem::path& folder);
  // Opens a run that was begun; throws Error (not_found, bad_file).
  static RunDirectory open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path checkpoints() const { return folder_ / "checkpoints"; }
  std::filesystem::path best() const { return folder_ / "best.safetensors"; }
  std::filesystem::path model() const { return folder_ / "model.onnx"; }
  const nlohmann::json& config() const { return config_; }

  // Writes config.json where `config` is another than it holds: a run that goes on further than was planned.
  void change_config(const nlohmann::json& config);
  void add_environment(const nlohmann::json& record) const;
  void log(const nlohmann::json& line) const;
  // Drops the lines of steps after `step`: what a killed run had logged past its last checkpoint.
  void rewind_log(std::int64_t step) const;
  std::vector<nlohmann::json> read_log() const { return log_lines(metrics()); }

 private:
  RunDirectory(std::filesystem::path folder, nlohmann::json config)
      : folder_(std::move(folder)), config_(std::move(config)) {}
  std::filesystem::path metrics() const { return folder_ / "metrics.jsonl"; }

  std::filesystem::path folder_;
  nlohmann::json config_;
};

}  // namespace superstep::run
