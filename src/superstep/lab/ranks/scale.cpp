#include "superstep/lab/ranks/scale.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/lab/ranks/launch.h"
#include "superstep/record/result_json.h"
#include "superstep/record/summary.h"
#include "superstep/workload/workload.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

// A folder that is gone when we are.
class ScratchFolder {
 public:
  ScratchFolder() : path_((fs::temp_directory_path() / "superstep-scale-XXXXXX").string()) {
    if (!mkdtemp(path_.data())) throw Error(ErrorCode::io, "cannot make a folder for the runs", path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  fs::path path() const { return path_; }

 private:
  std::string path_;
};

std::int64_t batch_of(const ScaleSettings& settings, int ranks) {
  const std::int64_t given =
      settings.batch > 0 ? settings.batch : workload::find_workload(settings.workload).training.batch;
  return settings.mode == ScaleMode::weak ? given * ranks : given;
}

record::Result run_once(const ScaleSettings& settings, int ranks, const fs::path& folder) {
  const fs::path json = folder / "result.json";
  const std::int64_t batch = batch_of(settings, ranks);
  LaunchSettings launch{.ranks = ranks, .arguments = {}, .launcher = settings.launcher, .folder = folder};
  launch.arguments = {"train",       settings.workload,
                      "--steps",     std::to_string(settings.steps),
                      "--batch",     std::to_string(batch),
                      "--threads",   std::to_string(settings.threads),
                      "--precision", settings.precision,
                      "--json",      json.string(),
                      "--quiet",     "--no-out"};
  if (settings.samples > 0)
    launch.arguments.insert(launch.arguments.end(), {"--samples", std::to_string(settings.samples)});
  launch_ranks_or_throw(launch, fmt::format("{} on {} ranks", settings.workload, ranks));
  return record::read_results(read_text_file(json), json.string()).front();
}

// Runs of one number of ranks as one result: medians over runs, every run a sample.
struct Point {
  int ranks;
  std::vector<record::Result> runs;

  std::vector<double> values(const char* name) const {
    std::vector<double> found;
    for (const record::Result& run : runs)
      if (const record::Quantity* quantity = run.find(name)) found.push_back(quantity->value);
    return found;
  }
};

void add_median(record::Result& result, const Point& point, const char* name, const char* unit) {
  const std::vector<double> samples = point.values(name);
  if (samples.empty()) return;
  const record::Summary summary = record::summarize(samples);
  record::Quantity quantity{
      .name = name, .unit = unit, .value = summary.median, .statistic = "median", .samples = samples};
  quantity.low = summary.low;
  quantity.high = summary.high;
  result.quantities.push_back(std::move(quantity));
}

record::Result to_result(const ScaleSettings& settings, const Point& point, const record::Result* smallest) {
  const char* const mode = settings.mode == ScaleMode::weak ? "weak" : "strong";
  record::Result result{
      .command = "scale", .workload = settings.workload, .mode = std::string("train, ") + mode + " scaling"};
  result.id = fmt::format("{}-{}-{}ranks", settings.workload, mode, point.ranks);
  result.units = point.ranks;
  result.config = {{"precision", settings.precision},
                   {"batch", batch_of(settings, point.ranks)},
                   {"ranks", point.ranks},
                   {"threads", settings.threads},
                   {"steps", settings.steps},
                   {"runs", settings.repeat}};
  add_median(result, point, "throughput", "samples/s");
  add_median(result, point, "throughput_with_data", "samples/s");
  add_median(result, point, "step_time", "s");
  add_median(result, point, "communication_time", "s");
  add_median(result, point, "waiting_time", "s");
  add_median(result, point, "gradient_bytes", "B");
  add_median(result, point, "loss", "");
  if (!smallest) return result;
  const double now = result.find("throughput")->value, before = smallest->find("throughput")->value;
  const int units = static_cast<int>(smallest->units);
  result.add("scaling_efficiency", scaling_efficiency(now, point.ranks, before, units), "");
  if (const auto share = determined_fraction(now / before, static_cast<double>(point.ranks) / units))
    result.add("parallel_fraction", *share, "");
  return result;
}

std::string cell(const record::Result& result, const char* name) {
  const record::Quantity* found = result.find(name);
  if (!found || !std::isfinite(found->value)) return "";
  if (found->unit == "s") return format_seconds(found->value);
  return found->unit.empty() ? fmt::format("{:.3f}", found->value) : format_si(found->value, found->unit);
}

// The parallel share; "-" where there is one number of ranks and nothing to compare with.
std::string share_cell(const record::Result& result) {
  if (!result.find("scaling_efficiency")) return "-";
  return result.find("parallel_fraction") ? cell(result, "parallel_fraction") : "not determined";
}

// Why some shares are not determined, a line each.
std::string about_shares(const std::vector<record::Result>& results) {
  std::string text;
  for (const record::Result& result : results) {
    const record::Quantity* efficiency = result.find("scaling_efficiency");
    if (!efficiency || result.find("parallel_fraction")) continue;
    const std::int64_t smallest = results.front().units;
    const double speedup =
        efficiency->value * static_cast<double>(result.units) / static_cast<double>(smallest);
    text += fmt::format(
        "{} ranks are {:.2f} times as fast as {}: no share of parallel work, 0 to 1, does that by Amdahl's "
        "law ({})\n",
        result.units, speedup, smallest,
        speedup < 1 ? "they slow each other down: more of them than processors, or noise"
                    : "caches, or noise");
  }
  return text;
}

}  // namespace

double scaling_efficiency(double throughput, int units, double smallest_throughput, int smallest_units) {
  return throughput / smallest_throughput * smallest_units / units;
}

double parallel_fraction(double speedup, double unit_ratio) {
  if (unit_ratio == 1) return std::nan("");
  return (1 - 1 / speedup) / (1 - 1 / unit_ratio);
}

std::optional<double> determined_fraction(double speedup, double unit_ratio) {
  const double fraction = parallel_fraction(speedup, unit_ratio);
  return fraction >= 0 && fraction <= 1 ? std::optional(fraction) : std::nullopt;
}

std::vector<record::Result> measure_scaling(const ScaleSettings& settings) {
  const ScratchFolder folder;
  std::vector<Point> points;
  for (const int ranks : settings.ranks) points.push_back({ranks, {}});
  std::ranges::sort(points, {}, &Point::ranks);
  for (int round = 0; round < settings.repeat; ++round)
    for (Point& point : points) {
      if (settings.progress)
        settings.progress(fmt::format("run {} of {} on {} ranks", round + 1, settings.repeat, point.ranks));
      point.runs.push_back(run_once(settings, point.ranks, folder.path()));
    }
  std::vector<record::Result> results;
  for (const Point& point : points) {
    record::Result result = to_result(settings, point, results.empty() ? nullptr : &results.front());
    results.push_back(std::move(result));
  }
  return results;
}

std::string scaling_table(const std::vector<record::Result>& results) {
  TextTable table({"ranks", "batch", "throughput", "with data", "step", "exchange", "waiting", "efficiency",
                   "parallel share"});
  for (const record::Result& result : results)
    table.add_row({std::to_string(result.units), result.config["batch"].dump(), cell(result, "throughput"),
                   cell(result, "throughput_with_data"), cell(result, "step_time"),
                   cell(result, "communication_time"), cell(result, "waiting_time"),
                   cell(result, "scaling_efficiency"), share_cell(result)});
  return table.to_string() + about_shares(results);
}

}  // namespace superstep::lab
