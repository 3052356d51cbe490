#include "superstep/cli/advise/by_quality.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/run/user/user_model.h"

namespace superstep::cli {
namespace {

namespace fs = std::filesystem;

// Where superstep study quality writes unless it is told otherwise.
fs::path usual_folder(const std::string& workload) { return fs::path("study") / ("quality-" + workload); }

bool counts_a_training(const std::string& mode, const std::string& goal) {
  return mode == "train" && (goal == "time-to-quality" || goal == "cost" || goal == "energy");
}

// A batch that was asked for is one of those that were measured.
void keep_batch(lab::QualityCurve& curve, std::int64_t batch) {
  std::vector<std::string> measured;
  for (const lab::QualityPoint& point : curve.points) measured.push_back(fmt::format("{}", point.batch));
  std::erase_if(curve.points, [&](const lab::QualityPoint& point) { return point.batch != batch; });
  if (curve.points.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("was not measured in {}: {} were", curve.source, join(measured, ", ")),
                fmt::format("--batch {}", batch), "give one of them, or --quality none");
}

}  // namespace

void add_quality_option(CLI::App& command, QualityChoice& choice) {
  command
      .add_option("--quality", choice.path,
                  "folder of study quality, whose measured steps count, or none (default: its usual one)")
      ->type_name("PATH");
}

void find_quality(const CLI::App& command, const lab::AdviseSettings& settings, const std::string& mode,
                  const std::string& goal, QualityChoice& choice) {
  const bool counts = counts_a_training(mode, goal);
  refuse_given(command, counts ? "" : "is for a training, and --for time-to-quality, cost or energy",
               {"--quality"});
  if (!counts || choice.path == "none" || run::is_model_file(settings.model.workload)) return;
  const fs::path folder = choice.path.empty() ? usual_folder(settings.model.workload) : fs::path(choice.path);
  if (choice.path.empty() && !fs::exists(folder / "results.json")) return;
  // What the search heeds that the curve's fixed batches leave no room for.
  for (const char* const option : {"--at-most", "--samples-per-second", "--measure", "--samples", "--set",
                                   "--loss", "--shape", "--bound"})
    if (const CLI::Option* given = command.get_option_no_throw(option); given && given->count() > 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("means nothing to the steps that were measured in {}", folder.string()), option,
                  "leave it away, or give --quality none");
  choice.curve = lab::read_quality_curve(folder, settings.model.workload);
  if (settings.most_samples > 0) keep_batch(*choice.curve, settings.most_samples);
}

void advise_by_quality(const lab::AdviseSettings& settings, const lab::QualityCurve& curve,
                       const std::string& page, bool every_option) {
  const record::HostLoad load;
  const auto machines = lab::advise_by_quality(settings, curve);
  if (!page.empty()) write_file_atomically(page, lab::page_of(machines, curve, settings.goal));
  std::vector<record::Result> results = lab::results_of(machines, curve, settings.goal);
  keep_results(results, load, false);
  if (common().quiet) return;
  fmt::print("{}", lab::text_of(machines, curve, settings.goal, every_option));
  if (!page.empty()) fmt::print("page: {}\n", page);
}

void tell_how_to_measure(const std::string& workload) {
  say("superstep: note: no quality was measured: it is counted until the recipe ends, whatever that "
      "reaches\n  superstep study quality {} --until METRIC=VALUE measures the steps to a target, by batch "
      "and "
      "precision\n",
      workload);
}

}  // namespace superstep::cli
