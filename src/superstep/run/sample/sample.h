// Sampling: from a workload or a model file and its data to draws of its posterior, their convergence, and
// forecasts of held-out samples with their uncertainty.
//
// The folder of a run:
//   config.json          what was asked for
//   METHOD/chain-K.npz   draws and where the chain stands (chain_record.h)
//   METHOD/summary.csv   a row a number: mean, deviation, quantiles, r-hat, effective draws
//   summary.json         of every method, and what it is held against
//   sample.html          traces, convergence, forecasts
//   windows.jsonl        of sliding windows: a line a window
//   lock                 held by the process that writes here
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "superstep/run/sample/sample_settings.h"
#include "superstep/run/sample/sample_summary.h"

namespace superstep::run {

// Of one window: forecasts of the rows behind it.
struct WindowResult {
  std::int64_t first = 0;                             // row
  double log_likelihood = 0, floor = 0, ceiling = 0;  // nats a row; not a number where nobody knows
  double acceptance = 0, worst_r_hat = 0, least_effective = 0, seconds = 0;
  std::int64_t divergent = 0;
};

struct SampleReport {
  std::vector<MethodSummary> methods = {};
  workload::ForecastReferences references = {};
  std::optional<workload::Reference> constant =
      {};  // the distribution of the training targets, whatever the input
  std::vector<WindowResult> windows = {};
  std::int64_t training = 0, held_out = 0;  // samples
  std::size_t parameters = 0;
  double seconds = 0;  // of this sitting
  nlohmann::json task = {};
};

using Tell = std::function<void(const std::string&)>;

// Throws Error (interrupted) on Ctrl-C, with every chain written as far as it was whole: the same call goes
// on and gives the bits of one that was never stopped.
SampleReport sample(const SampleSettings& settings, const std::filesystem::path& out, const Tell& tell);

// Parts of it.
// Once the data are open: a call that names the wrong file leaves nothing that the next one disagrees with.
void keep_config(const std::filesystem::path& out, const SampleSettings& settings);
// The density of held-out targets under the distribution of the training targets alone: of the first term.
std::optional<workload::Reference> constant_forecast(const Posterior& posterior, const PosteriorData& data);
// Windows that slide over the rows of a workload with an option "first", each begun where the last one ended.
// Finished windows of `out` are not sampled again.
std::vector<WindowResult> sample_windows(const SampleSettings& settings, const std::filesystem::path& out,
                                         ThreadPool& pool, const Tell& tell);
nlohmann::json to_json(const SampleReport& report);
void write_page(const std::filesystem::path& path, const SampleSettings& settings, const SampleReport& report,
                const PosteriorData& data, const std::vector<std::vector<ChainRecord>>& records);

}  // namespace superstep::run
