#include "superstep/run/train/folds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/run/model.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/train/fold_task.h"
#include "superstep/run/train/run_directory.h"

namespace superstep::run {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* file_name = "folds.json";
constexpr const char* schema = "superstep-folds/1";

json json_of(const FoldResult& result) {
  json metrics = json::array();
  for (const Metric& metric : result.metrics)
    metrics.push_back({{"name", metric.name}, {"value", metric.value}, {"unit", metric.unit}});
  return {{"fold", result.fold},
          {"steps", result.steps},
          {"validated", result.validated},
          {"metrics", std::move(metrics)}};
}

FoldResult result_from(const json& object) {
  FoldResult result{.fold = object.at("fold"),
                    .steps = object.at("steps"),
                    .validated = object.at("validated"),
                    .metrics = {}};
  for (const json& each : object.at("metrics"))
    result.metrics.push_back(
        {.name = each.at("name"),
         .value = each.at("value").is_null() ? std::nan("") : each["value"].get<double>(),
         .unit = each.at("unit"),
         .samples = {}});
  return result;
}

json read(const fs::path& folder) {
  const fs::path file = folder / file_name;
  json kept = parse_json(read_text_file(file));
  if (!kept.is_object() || kept.value("schema", json()) != schema || !kept.contains("config") ||
      !kept["config"].is_object() || !kept.contains("done") || !kept["done"].is_array())
    throw Error(ErrorCode::bad_file, "is not what a cross validation keeps", file.string(),
                "the file is damaged");
  return kept;
}

std::vector<FoldResult> done_before(const fs::path& folder) {
  std::vector<FoldResult> done;
  const json kept = read(folder);  // named: in the head of the loop it would be gone before the first turn
  try {
    for (const json& each : kept["done"]) done.push_back(result_from(each));
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, error.what(), (folder / file_name).string(), "the file is damaged");
  }
  return done;
}

// What a fold says of its quality: the loss of its training and what validated, not its speed.
std::vector<Metric> quality_of(const TrainReport& report) {
  const auto from = std::ranges::find(report.metrics, "loss", &Metric::name);
  return {from, report.metrics.end()};
}

class Folds {
 public:
  Folds(const TrainSettings& settings, const TrainOptions& options) : settings_(settings), options_(options) {
    check_folds({.validation = settings.validation,
                 .model_options = settings.model_options,
                 .pool = nullptr,
                 .folds = settings.folds});
    if (options_.validate.empty()) options_.validate = "all";
    if (options_.out.empty()) return;
    if (options_.resume)
      results_ = done_before(options_.out);
    else
      refuse_existing();
    world_.barrier();  // before the first one writes, all have looked
    if (writes()) begin();
  }

  std::vector<FoldResult> run(const std::function<void(const FoldResult&)>& done) {
    for (const FoldResult& each : results_) done(each);
    for (int fold = static_cast<int>(results_.size()) + 1; fold <= settings_.folds; ++fold) {
      results_.push_back(trained(fold));
      if (writes()) write();
      done(results_.back());
    }
    return results_;
  }

 private:
  bool writes() const { return !options_.out.empty() && world_.rank() == 0; }

  void refuse_existing() const {
    RunDirectory::refuse_existing(options_.out);
    if (holds_folds(options_.out))
      throw Error(
          ErrorCode::invalid_argument, "holds a cross validation already", options_.out.string(),
          fmt::format("go on with it by --resume {}, or choose another --out", options_.out.string()));
  }

  void begin() {
    if (!options_.resume) {
      require_writable_folder(options_.out);
      made_ = !fs::exists(options_.out);
      make_folder(options_.out);
    }
    lock_ = std::make_unique<FolderLock>(options_.out);
    if (!options_.resume) write();
  }

  // A call that was wrong, as its first training says before its first step, leaves nothing behind.
  void take_back() {
    if (!writes() || options_.resume || begun_) return;
    std::error_code ignored;
    fs::remove(options_.out / file_name, ignored);
    if (!made_) return;
    fs::remove(options_.out / "lock", ignored);
    fs::remove(options_.out, ignored);  // if it is empty
  }

  void write() const {
    json done = json::array();
    for (const FoldResult& each : results_) done.push_back(json_of(each));
    const HoldEnd until_it_is_written;
    write_file_atomically(
        options_.out / file_name,
        json{{"schema", schema}, {"config", to_json(settings_)}, {"done", std::move(done)}}.dump(1) + "\n");
  }

  FoldResult trained(int fold) {
    TrainSettings settings = settings_;
    settings.fold = fold;
    TrainOptions options = options_;
    if (!options_.out.empty()) {
      options.part_of = options_.out;
      options.out = options_.out / fmt::format("fold-{}", fold);
      options.resume = fs::exists(options.out / "config.json");
    }
    const StopNote note(options_.out.empty() ? "without --out nothing was kept"
                                             : fmt::format("go on with: superstep train {} --resume {}",
                                                           settings.workload, options_.out.string()));
    world_.barrier();  // all have looked whether it was begun
    options.planned = [this](const target::PlanSummary& plan) {
      begun_ = true;
      if (options_.planned) options_.planned(plan);
    };
    try {
      const TrainReport report = train(settings, options);
      return {
          .fold = fold, .steps = report.steps, .validated = report.validated, .metrics = quality_of(report)};
    } catch (...) {
      take_back();
      throw;
    }
  }

  Communicator& world_ = communicator();
  TrainSettings settings_;
  TrainOptions options_;
  std::unique_ptr<FolderLock> lock_;
  bool made_ = false, begun_ = false;
  std::vector<FoldResult> results_;
};

// Who reads settings does not know of which file they are.
TrainSettings settings_of(const json& config, const fs::path& file) {
  try {
    return train_settings_from_json(config);
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), file.string(), error.hint());
  }
}

FoldSummary summarized(const Metric& metric, std::vector<double> values) {
  FoldSummary summary{.name = metric.name, .unit = metric.unit, .values = std::move(values)};
  const auto count = static_cast<double>(summary.values.size());
  for (const double value : summary.values) summary.mean += value / count;
  double squares = 0;
  for (const double value : summary.values) squares += (value - summary.mean) * (value - summary.mean);
  if (count > 1) summary.standard_error = std::sqrt(squares / (count - 1) / count);
  return summary;
}

}  // namespace

std::vector<FoldSummary> summary_of(const std::vector<FoldResult>& folds) {
  std::vector<FoldSummary> all;
  if (folds.empty()) return all;
  for (const Metric& metric : folds.front().metrics) {
    std::vector<double> values;
    for (const FoldResult& fold : folds)
      if (const auto found = std::ranges::find(fold.metrics, metric.name, &Metric::name);
          found != fold.metrics.end())
        values.push_back(found->value);
    if (values.size() == folds.size()) all.push_back(summarized(metric, std::move(values)));
  }
  return all;
}

std::vector<FoldResult> train_folds(const TrainSettings& settings, const TrainOptions& options,
                                    const std::function<void(const FoldResult&)>& done) {
  return Folds(settings, options).run(done);
}

bool holds_folds(const fs::path& folder) { return fs::exists(folder / file_name); }

TrainSettings settings_kept_in(const fs::path& folder) {
  if (!holds_folds(folder)) return settings_of(RunDirectory::open(folder).config(), folder / "config.json");
  return settings_of(read(folder)["config"], folder / file_name);
}

}  // namespace superstep::run
