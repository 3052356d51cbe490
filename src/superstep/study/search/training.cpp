#include "superstep/study/search/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/lab/bench/processes.h"
#include "superstep/record/member.h"
#include "superstep/run/quality.h"
#include "superstep/run/train/run_directory.h"
#include "superstep/run/train/train_resume.h"
#include "superstep/study/kept.h"
#include "superstep/study/run_log.h"

namespace superstep::study {
namespace {

namespace fs = std::filesystem;

bool has_begun(const fs::path& run) {
  return fs::exists(run / "checkpoints") && !fs::is_empty(run / "checkpoints");
}

// What a run does not keep of its call is said again: how much validates, libraries of operators.
std::vector<std::string> resumed_words(const SearchReport& search, const Trial& trial, const fs::path& run) {
  constexpr std::array given_otherwise{"--epochs", "--until"};  // the run has them, though they may change
  std::vector<std::string> words{"train", search.settings.workload, "--resume", run.string()};
  for (const std::string& word : search.words_of(trial)) {
    const std::string option = word.substr(0, word.find('='));
    if (option.starts_with("--") && !run::is_kept(option) &&
        std::ranges::find(given_otherwise, option) == given_otherwise.end())
      words.push_back(word);
  }
  return words;
}

std::vector<std::string> command_of(const SearchReport& search, const Trial& trial, const fs::path& run) {
  const SearchSettings& settings = search.settings;
  std::vector<std::string> words;
  if (has_begun(run)) {
    words = resumed_words(search, trial, run);
  } else {
    fs::remove_all(run);
    words = search.words_of(trial);
    words.insert(words.end(), {"--out", run.string()});
  }
  const std::size_t rung = static_cast<std::size_t>(trial.rung);
  if (rung + 1 < settings.halving.epochs.size())
    words.insert(words.end(), {"--stop-after", fmt::format("{}", settings.halving.epochs[rung])});
  words.insert(words.end(), {"--threads", fmt::format("{}", threads_of(search, trial)), "--quiet"});
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

int threads_of(const SearchReport& search, const Trial& trial) {
  const fs::path run = search.run_of(trial);
  if (!fs::exists(run / "config.json")) return search.settings.threads;
  // Of devices behind a plug-in it has none, and the threads beside them change no bit.
  const auto replicas = record::integer_member(run::RunDirectory::open(run).config(), "replicas", 0);
  return replicas > 0 ? static_cast<int>(replicas) : search.settings.threads;
}

void train_to_rung(const SearchReport& search, Trial& trial) {
  const fs::path run = search.run_of(trial);
  const Stopwatch watch;
  try {
    end(search.settings, trial, lab::run_in_process(command_of(search, trial, run)));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) throw;
    trial.words = failure_words(error);
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
  for (const nlohmann::json& row : run::log_lines(log)) {
    if (!row.contains("epoch") || !row.contains(metric)) continue;
    curve.epochs.push_back(record::number_member(row, "epoch", 0));
    curve.qualities.push_back(record::number_member(row, metric.c_str(), std::nan("")));
  }
  return curve;
}

}  // namespace superstep::study
