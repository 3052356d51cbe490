#include "superstep/study/search/training.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/lab/bench/processes.h"
#include "superstep/record/member.h"
#include "superstep/run/quality.h"
#include "superstep/study/run_log.h"

namespace superstep::study {
namespace {

namespace fs = std::filesystem;

bool has_begun(const fs::path& run) {
  return fs::exists(run / "checkpoints") && !fs::is_empty(run / "checkpoints");
}

std::vector<std::string> command_of(const SearchReport& search, const Trial& trial, const fs::path& run) {
  const SearchSettings& settings = search.settings;
  std::vector<std::string> words;
  if (has_begun(run)) {
    words = {"train", settings.workload, "--resume", run.string()};
  } else {
    fs::remove_all(run);
    words = search.words_of(trial);
    words.insert(words.end(), {"--out", run.string()});
  }
  const std::size_t rung = static_cast<std::size_t>(trial.rung);
  if (rung + 1 < settings.halving.epochs.size())
    words.insert(words.end(), {"--stop-after", fmt::format("{}", settings.halving.epochs[rung])});
  words.insert(words.end(), {"--threads", fmt::format("{}", settings.threads), "--quiet"});
  return words;
}

void end(const SearchSettings& settings, Trial& trial, const std::vector<record::Result>& results) {
  const record::Quantity* found = results.empty() ? nullptr : results.front().find(settings.metric);
  if (!found) {
    trial.state = TrialState::failed;
    trial.words = "the training says nothing of " + settings.metric;
    return;
  }
  trial.qualities.push_back(found->value);
  const bool to_the_end = static_cast<std::size_t>(trial.rung) + 1 == settings.halving.epochs.size();
  const bool reached =
      settings.until && run::as_good(found->value, settings.until->value, settings.higher_is_better);
  trial.state = reached ? TrialState::reached : to_the_end ? TrialState::done : TrialState::paused;
}

}  // namespace

void train_to_rung(const SearchReport& search, Trial& trial) {
  const fs::path run = search.run_of(trial);
  const Stopwatch watch;
  try {
    end(search.settings, trial, lab::run_in_process(command_of(search, trial, run)));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) throw;
    trial.words = error.message();
    trial.state = TrialState::failed;
    if (const auto step = diverged_at(run / "metrics.jsonl")) {
      trial.state = TrialState::diverged;
      trial.words = fmt::format("the loss is no number at step {}", *step);
      trial.qualities.push_back(std::nan(""));
    }
  }
  trial.seconds += watch.seconds();
}

Curve curve_of(const fs::path& log, const std::string& metric) {
  Curve curve;
  for (const nlohmann::json& row : log_lines(log)) {
    if (!row.contains("epoch") || !row.contains(metric)) continue;
    curve.epochs.push_back(record::number_member(row, "epoch", 0));
    curve.qualities.push_back(record::number_member(row, metric.c_str(), std::nan("")));
  }
  return curve;
}

}  // namespace superstep::study
