#include "superstep/cli/train/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/train/folds.h"

namespace superstep::cli {
namespace {

std::string number(double value) { return fmt::format("{:.4g}", value); }

void print_table(const std::vector<run::FoldSummary>& summary, std::size_t folds) {
  constexpr std::size_t most_columns = 10;  // of folds; of more the JSON has them
  std::vector<std::string> header{"metric", "mean", "standard error", "unit"};
  for (std::size_t fold = 1; fold <= folds && folds <= most_columns; ++fold)
    header.push_back(fmt::format("fold {}", fold));
  TextTable table(header);
  for (const run::FoldSummary& each : summary) {
    std::vector<std::string> row{each.name, number(each.mean), number(each.standard_error), each.unit};
    for (std::size_t fold = 0; fold < folds && folds <= most_columns; ++fold)
      row.push_back(number(each.values[fold]));
    table.add_row(row);
  }
  fmt::print("{}", table.to_string());
}

void tell(const run::FoldResult& result, int folds) {
  if (common().quiet || run::launched_rank() > 0 || result.metrics.empty()) return;
  const Metric& first = result.metrics.size() > 1 ? result.metrics[1] : result.metrics[0];
  say("superstep: fold {} of {}: {} {:.4g} on {} samples\n", result.fold, folds, first.name, first.value,
      format_count(static_cast<double>(result.validated)));
}

record::Result result_of(const run::TrainSettings& settings, const std::vector<run::FoldResult>& folds,
                         const std::vector<run::FoldSummary>& summary) {
  std::vector<Metric> metrics;
  nlohmann::json each = nlohmann::json::array(), errors = nlohmann::json::object();
  for (const run::FoldSummary& metric : summary) {
    metrics.push_back(
        {.name = metric.name, .value = metric.mean, .unit = metric.unit, .samples = metric.values});
    errors[metric.name] = metric.standard_error;
  }
  for (const run::FoldResult& fold : folds)
    each.push_back({{"fold", fold.fold}, {"steps", fold.steps}, {"validated", fold.validated}});
  record::Result result =
      command_result("train", settings.workload, run::to_json(settings), metrics, settings.target);
  result.mode = "train";
  result.details["folds"] = std::move(each);
  result.details["standard_errors"] = std::move(errors);
  return result;
}

}  // namespace

void refuse_further_folds(const std::vector<std::string>& given, const std::string& folder) {
  for (const char* const option : {"--epochs", "--steps", "--stop-after", "--until"})
    if (std::ranges::find(given, option) != given.end())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the folds in {} are all trained as they were begun", folder), option,
                  "leave it away, or begin anew with --out");
}

void train_folded(const run::TrainSettings& settings, const run::TrainOptions& options) {
  const std::vector<run::FoldResult> folds = run::train_folds(
      settings, options, [&](const run::FoldResult& result) { tell(result, settings.folds); });
  const std::vector<run::FoldSummary> summary = run::summary_of(folds);
  record::Result result = result_of(settings, folds, summary);
  if (!common().quiet && run::launched_rank() == 0) {
    fmt::print("{}: {} folds\n", settings.workload, settings.folds);
    print_table(summary, folds.size());
    if (!options.out.empty()) fmt::print("written to {}: a run for each fold\n", options.out.string());
  }
  result.folder = options.out.string();
  keep_and_write_result(std::move(result));
}

}  // namespace superstep::cli
