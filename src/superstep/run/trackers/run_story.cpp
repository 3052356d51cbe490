#include "superstep/run/trackers/run_story.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/run/train/run_directory.h"

namespace superstep::run {
namespace {

using nlohmann::json;

// Places in a log's line that are none of its values.
bool is_value(const std::string& name) { return name != "epoch" && name != "step" && name != "seconds"; }
}  // namespace

bool is_of_parameter(const std::string& name) { return name.starts_with("gradient_norm/"); }

bool is_of_training(const std::string& name) {
  return name == "loss" || name == "learning_rate" || name == "throughput" || name == "loss_scale" ||
         name == "skipped_steps" || name == "gradient_norm" || is_of_parameter(name);
}

namespace {

LoggedEpoch epoch_of(const json& line) {
  LoggedEpoch epoch{.epoch = line.value("epoch", 0.0),
                    .step = line.value("step", std::int64_t{0}),
                    .seconds = line.value("seconds", 0.0),
                    .values = {}};
  for (const auto& [name, value] : line.items())
    if (is_value(name) && value.is_number()) epoch.values.emplace_back(name, value.get<double>());
  return epoch;
}

// "2026-11-29T18:19:17+00:00" of the first call; without it when the folder's configuration was written.
double began(const std::filesystem::path& folder) {
  if (const auto path = folder / "environment.json"; std::filesystem::exists(path)) {
    const json records = parse_json(read_text_file(path));
    if (records.is_array() && !records.empty() && records[0].is_object()) {
      std::tm parts{};
      const std::string date = records[0].value("date", "");
      if (!date.empty() && ::strptime(date.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) != nullptr)
        return static_cast<double>(::timegm(&parts));
    }
  }
  const auto written = std::filesystem::last_write_time(folder / "config.json");
  return std::chrono::duration<double>(std::chrono::file_clock::to_sys(written).time_since_epoch()).count();
}

}  // namespace

const char* name_of(RunStatus status) {
  return status == RunStatus::running ? "running" : status == RunStatus::finished ? "finished" : "stopped";
}

double LoggedEpoch::value(const std::string& name) const {
  const auto found = std::ranges::find(values, name, [](const auto& each) { return each.first; });
  return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

std::string name_of_folder(const std::filesystem::path& folder) {
  const std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

RunStory read_story(const std::filesystem::path& folder) {
  const RunDirectory directory = RunDirectory::open(folder);
  RunStory story{
      .folder = folder, .config = directory.config(), .began = began(folder), .epochs = {}, .metric = {}};
  // The lock first: a run that ends between the two has then logged its end.
  const bool locked = is_locked(folder);
  bool finished = false;
  for (const json& line : directory.read_log()) {
    finished = line.value("event", "") == "finished";
    if (line.contains("epoch") && line["epoch"].is_number()) story.epochs.push_back(epoch_of(line));
  }
  story.status = locked ? RunStatus::running : finished ? RunStatus::finished : RunStatus::stopped;
  if (story.epochs.empty()) return story;
  // As the quality that was judged names it; before that the first that the log has.
  if (const auto path = folder / "quality.json"; std::filesystem::exists(path))
    if (const json quality = parse_json(read_text_file(path)); quality.is_object())
      story.metric = quality.value("metric", "");
  if (!std::isnan(story.epochs.back().value(story.metric))) return story;
  story.metric.clear();
  for (const auto& [name, value] : story.epochs.back().values)
    if (story.metric.empty() && !is_of_training(name)) story.metric = name;
  return story;
}

}  // namespace superstep::run
