#include "superstep/run/trackers/run_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <span>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/record/member.h"
#include "superstep/run/quality.h"
#include "superstep/run/trackers/run_names.h"
#include "superstep/run/train/run_directory.h"

namespace superstep::run {
namespace {

using nlohmann::json;
using record::integer_member;
using record::number_member;
using record::text_member;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// Places in a log's line that are none of its values.
bool is_value(const std::string& name) { return name != "epoch" && name != "step" && name != "seconds"; }

LoggedEpoch epoch_of(const json& line) {
  LoggedEpoch epoch{.epoch = number_member(line, "epoch", 0),
                    .step = integer_member(line, "step", 0),
                    .seconds = number_member(line, "seconds", 0),
                    .values = {}};
  for (const auto& [name, value] : line.items())
    if (is_value(name) && value.is_number()) epoch.values.emplace_back(name, value.get<double>());
  return epoch;
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw Error(ErrorCode::bad_file, why, file.string(), "the file is damaged");
}

json config_in(const RunDirectory& directory) {
  json config = directory.config();
  if (!config.is_object() || text_member(config, "workload", "").empty())
    refuse(directory.folder() / "config.json", "is not the configuration of a run");
  return config;
}

// "2026-11-29T18:19:17+00:00" of the first call; without it when the folder's configuration was written.
double began(const std::filesystem::path& folder) {
  if (const auto path = folder / "environment.json"; std::filesystem::exists(path)) {
    const json records = parse_json(read_text_file(path));
    if (!records.is_array() ||
        !std::ranges::all_of(records, [](const json& each) { return each.is_object(); }))
      refuse(path, "is not a list of records");
    std::tm parts{};
    const std::string date = records.empty() ? "" : text_member(records[0], "date", "");
    if (!date.empty() && ::strptime(date.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) != nullptr)
      return static_cast<double>(::timegm(&parts));
  }
  const auto written = std::filesystem::last_write_time(folder / "config.json");
  return std::chrono::duration<double>(std::chrono::file_clock::to_sys(written).time_since_epoch()).count();
}

// As the quality that was judged names it; before that the first that the log has.
std::string metric_of(const std::filesystem::path& folder, const LoggedEpoch& last) {
  if (const auto path = folder / quality_file; std::filesystem::exists(path)) {
    const json quality = parse_json(read_text_file(path));
    if (!quality.is_object()) refuse(path, "is not what a run keeps of its quality");
    if (std::string judged = text_member(quality, "metric", ""); !std::isnan(last.value(judged)))
      return judged;
  }
  const auto first =
      std::ranges::find_if_not(last.values, is_of_training, &decltype(last.values)::value_type::first);
  return first == last.values.end() ? "" : first->first;
}

// NaN before the first epoch.
double steps_an_epoch(const RunStory& story) {
  if (story.epochs.empty()) return unknown;
  const LoggedEpoch& last = story.epochs.back();
  return last.epoch > 0 && last.step > 0 ? static_cast<double>(last.step) / last.epoch : unknown;
}

}  // namespace

bool is_of_parameter(const std::string& name) { return name.starts_with("gradient_norm/"); }

bool is_of_training(const std::string& name) {
  return name == "loss" || name == "learning_rate" || name == "throughput" || name == "loss_scale" ||
         name == "skipped_steps" || name == "gradient_norm" || is_of_parameter(name);
}

const char* name_of(RunStatus status) {
  return status == RunStatus::running ? "running" : status == RunStatus::finished ? "finished" : "stopped";
}

double LoggedEpoch::value(const std::string& name) const {
  const auto found = std::ranges::find(values, name, [](const auto& each) { return each.first; });
  return found == values.end() ? unknown : found->second;
}

RunStory read_story(const std::filesystem::path& folder, std::string name) {
  const RunDirectory directory = RunDirectory::open(folder);
  if (name.empty()) name = names_of(std::span(&folder, 1)).front();
  RunStory story{.folder = folder,
                 .name = std::move(name),
                 .config = config_in(directory),
                 .began = began(folder),
                 .epochs = {},
                 .metric = {}};
  // The lock first: a run that ends between the two has then logged its end.
  const bool locked = is_locked(folder);
  bool finished = false;
  for (const json& line : directory.read_log()) {
    finished = text_member(line, "event", "") == "finished";
    story.step = std::max(story.step, integer_member(line, "step", 0));
    if (line.contains("epoch") && line["epoch"].is_number()) story.epochs.push_back(epoch_of(line));
  }
  story.status = locked ? RunStatus::running : finished ? RunStatus::finished : RunStatus::stopped;
  if (!story.epochs.empty()) story.metric = metric_of(folder, story.epochs.back());
  return story;
}

// As a training finds its last step: of --steps, or of the schedule's epochs, and no later than --stop-after.
RunProgress progress_of(const RunStory& story) {
  const double steps = number_member(story.config, "steps", 0), each = steps_an_epoch(story);
  const double epochs = number_member(story.config, "epochs", 0);
  const double stop = number_member(story.config, "stop_after", 0);
  if (steps > 0) {
    RunProgress progress{.in_steps = true, .done = static_cast<double>(story.step), .end = steps};
    if (stop > 0 && std::isnan(each)) progress.end = unknown;
    if (stop > 0 && each > 0) progress.end = std::min(steps, std::max(1.0, std::round(stop * each)));
    return progress;
  }
  RunProgress progress{.in_steps = false, .done = 0, .end = epochs > 0 ? epochs : unknown};
  if (stop > 0) progress.end = std::fmin(progress.end, stop);
  // The end may be within an epoch, which is then no epoch of the log.
  if (each > 0)
    progress.done = std::max(story.epochs.back().epoch, static_cast<double>(story.step) / each);
  else if (!story.epochs.empty())
    progress.done = story.epochs.back().epoch;
  else if (story.status == RunStatus::finished && !std::isnan(progress.end))
    progress.done = progress.end;
  return progress;
}

double seconds_left(const RunStory& story) {
  if (story.status != RunStatus::running || story.epochs.empty()) return unknown;
  const RunProgress progress = progress_of(story);
  const LoggedEpoch& last = story.epochs.back();
  const double done = progress.in_steps ? static_cast<double>(last.step) : last.epoch;
  return done > 0 && !std::isnan(progress.end) ? last.seconds * std::max(0.0, progress.end / done - 1)
                                               : unknown;
}

}  // namespace superstep::run
