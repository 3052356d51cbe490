#include "superstep/study/quality/trainings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/lab/bench/processes.h"
#include "superstep/record/member.h"
#include "superstep/run/model.h"
#include "superstep/run/train/run_directory.h"
#include "superstep/study/kept.h"
#include "superstep/study/run_log.h"

namespace superstep::study {
namespace {

namespace fs = std::filesystem;

double rate_at(const QualitySettings& settings, const run::Model& model, std::int64_t batch) {
  const double power = settings.rule == RateRule::linear        ? 1
                       : settings.rule == RateRule::square_root ? 0.5
                                                                : 0;
  const double times = static_cast<double>(batch) / static_cast<double>(model.settings().batch);
  return model.schedule().peak * std::pow(times, power);
}

std::string key_of(const Training& training) {
  return fmt::format("{}-batch-{}-seed-{}", training.precision, training.batch, training.seed);
}

// What it is trained by; where it is kept, and whether it goes on, is added.
std::vector<std::string> command_of(const QualitySettings& settings, const Training& training) {
  std::vector<std::string> words{
      "train",       settings.workload,
      "--precision", training.precision,
      "--batch",     fmt::format("{}", training.batch),
      "--seed",      fmt::format("{}", training.seed),
      "--until",     fmt::format("{}={}", settings.until.metric, settings.until.value)};
  if (settings.rule != RateRule::none)
    words.insert(words.end(), {"--learning-rate", fmt::format("{:.9g}", training.learning_rate)});
  if (settings.samples > 0) words.insert(words.end(), {"--samples", fmt::format("{}", settings.samples)});
  if (settings.epochs > 0) words.insert(words.end(), {"--epochs", fmt::format("{:g}", settings.epochs)});
  for (const std::string& option : settings.options) words.insert(words.end(), {"--set", option});
  return words;
}

std::vector<Training> asked(const QualitySettings& settings) {
  std::vector<Training> trainings;
  for (const std::string& precision : settings.precisions) {
    const run::Model model(
        {.workload = settings.workload, .precision = precision, .model_options = settings.options});
    for (const std::int64_t batch : settings.batches)
      for (int seed = 1; seed <= settings.seeds; ++seed) {
        Training training{.precision = precision,
                          .batch = batch,
                          .seed = static_cast<std::uint64_t>(seed),
                          .learning_rate = rate_at(settings, model, batch)};
        training.command = command_of(settings, training);
        trainings.push_back(std::move(training));
      }
  }
  return trainings;
}

// Whether the run in the folder was begun by this very command: one of other samples or another target is no
// part of it.
bool was_begun(const fs::path& begun, const Training& training) {
  return fs::exists(begun) && read_text_file(begun) == join(training.command, " ") + "\n";
}

// A run that an earlier call began goes on, with the same bits; one that never wrote a checkpoint, or that
// another command began, begins anew.
Kept trained(const QualitySettings& settings, const Training& training, const fs::path& folder) {
  Kept kept{.words = training.command, .seconds = 0, .share = 1, .results = {}, .failure = {}};
  std::vector<std::string> words = training.command;
  const fs::path begun = settings.out / "jobs" / (key_of(training) + ".begun");
  if (was_begun(begun, training) && fs::exists(folder / "checkpoints") &&
      !fs::is_empty(folder / "checkpoints")) {
    words = {"train", settings.workload, "--resume", folder.string()};
  } else {
    fs::remove_all(folder);
    write_file_atomically(begun, join(training.command, " ") + "\n");
    words.insert(words.end(), {"--out", folder.string()});
  }
  words.insert(words.end(), {"--threads", fmt::format("{}", settings.threads), "--quiet"});
  try {
    kept.results = lab::run_in_process(words);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) throw;
    kept.failure = failure_words(error);
  }
  if (kept.results.empty() && kept.failure.empty()) kept.failure = "the training gave no result";
  return kept;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

void read_crossing(const fs::path& log, const QualitySettings& settings, Training& training) {
  const run::Model model({.workload = settings.workload, .model_options = settings.options});
  double step_before = 0, value_before = 0;
  bool any = false;
  for (const nlohmann::json& row : run::log_lines(log)) {
    if (!row.contains("epoch") || !row.contains(settings.until.metric)) continue;
    const double step = record::number_member(row, "step", 0),
                 value = record::number_member(row, settings.until.metric.c_str(), NAN);
    training.curve.push_back({step, record::number_member(row, "seconds", 0), value});
    training.best = value;
    training.seconds = record::number_member(row, "seconds", 0);
    if (run::reaches(settings.until, model.workload(),
                     {{.name = settings.until.metric, .value = value, .unit = {}, .samples = {}}})) {
      const double share =
          any && value != value_before ? (settings.until.value - value_before) / (value - value_before) : 1;
      training.ending = Ending::reached;
      training.steps_low = step_before;
      training.steps_high = step;
      training.steps = step_before + std::clamp(share, 0.0, 1.0) * (step - step_before);
      return;
    }
    step_before = step;
    value_before = value;
    any = true;
  }
  if (!any) throw Error(ErrorCode::bad_file, "has no epoch with " + settings.until.metric, log.string());
  training.ending = Ending::not_reached;
  training.steps = training.steps_low = training.steps_high = step_before;
}

std::vector<Training> trainings_of(const QualitySettings& settings) {
  std::vector<Training> trainings = asked(settings);
  fs::create_directories(settings.out / "jobs");
  const KeptJobs jobs(settings.out / "jobs");
  Progress progress("time to quality", static_cast<double>(trainings.size()), "trainings");
  double done = 0;
  for (Training& training : trainings) {
    const std::string key = key_of(training);
    const fs::path folder = settings.out / "runs" / key;
    const Job job{.key = key, .command = training.command, .way = Way::train};
    std::optional<Kept> kept = jobs.find(job, 0, 0);
    progress.update(done, key);
    if (!kept) {
      if (interrupted()) throw Error(ErrorCode::interrupted, "between two trainings", settings.out.string());
      kept = trained(settings, training, folder);
      jobs.keep(job, *kept);
    }
    training.words = kept->failure;
    if (kept->failure.empty())
      read_crossing(folder / "metrics.jsonl", settings, training);
    else if (const auto step = diverged_at(folder / "metrics.jsonl"))
      training.ending = Ending::diverged, training.steps = static_cast<double>(*step),
      training.words = fmt::format("the loss is no number at step {}", *step);
    ++done;
  }
  progress.update(done);
  return trainings;
}

std::vector<MeasuredNoise> noises_of(const QualitySettings& settings,
                                     const std::vector<Training>& trainings) {
  std::vector<MeasuredNoise> all;
  for (const Training& training : trainings) {
    const fs::path folder = settings.out / "runs" / key_of(training);
    if (training.seed != 1 || !fs::exists(folder / "config.json")) continue;
    const Progress phase = Progress::phase("measuring the noise of gradients");
    std::ranges::move(noise_of_run(folder, settings.threads), std::back_inserter(all));
  }
  return all;
}

std::vector<Reached> summary_of(const std::vector<Training>& trainings) {
  std::vector<Reached> all;
  for (const Training& training : trainings) {
    if (all.empty() || all.back().precision != training.precision || all.back().batch != training.batch)
      all.push_back({.precision = training.precision, .batch = training.batch});
    ++all.back().seeds;
    all.back().reached += training.ending == Ending::reached ? 1 : 0;
    all.back().diverged += training.ending == Ending::diverged ? 1 : 0;
  }
  for (Reached& each : all) {
    std::vector<double> steps, seconds;
    for (const Training& training : trainings)
      if (training.precision == each.precision && training.batch == each.batch &&
          training.ending == Ending::reached) {
        steps.push_back(training.steps);
        seconds.push_back(training.seconds);
        each.steps_low =
            steps.size() == 1 ? training.steps_low : std::min(each.steps_low, training.steps_low);
        each.steps_high = std::max(each.steps_high, training.steps_high);
      }
    if (steps.empty()) continue;
    each.steps = median(steps);
    each.seconds = median(seconds);
  }
  return all;
}

std::optional<BatchLaw> law_of(const std::vector<Reached>& reached, const std::string& precision) {
  // S = a + b / B, each row over S: minimize the sum of (1 - (a + b / B) / S)^2.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  int batches = 0;
  for (const Reached& each : reached) {
    if (each.precision != precision || !each.resolved() || each.steps <= 0) continue;
    const double u = 1 / each.steps, v = u / static_cast<double>(each.batch);
    aa += u * u, ab += u * v, bb += v * v, a1 += u, b1 += v;
    ++batches;
  }
  const double determinant = aa * bb - ab * ab;
  if (batches < 2 || determinant <= 1e-12 * aa * bb) return std::nullopt;
  const double a = (a1 * bb - b1 * ab) / determinant, b = (aa * b1 - ab * a1) / determinant;
  if (a <= 0 || b <= 0) return std::nullopt;
  BatchLaw law{.precision = precision, .least_steps = a, .critical_batch = b / a, .batches = batches};
  for (const Reached& each : reached)
    if (each.precision == precision && each.resolved())
      law.largest_deviation = std::max(
          law.largest_deviation, std::abs(law.steps_at(static_cast<double>(each.batch)) / each.steps - 1));
  return law;
}

}  // namespace superstep::study
