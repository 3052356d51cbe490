// The report of a training run: one table for the terminal, one page to look at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/run/quality.h"

namespace superstep::lab {

struct ReportSettings {
  std::filesystem::path run;        // the run's folder
  std::filesystem::path out;        // folder for index.html
  std::int64_t samples = 20000;     // that the model is judged on, at most
  std::uint64_t seed = 0x5eed0000;  // of the fresh samples: not one that training data have
  int threads = 1;
  std::int64_t serving_calls = 1000;  // timed, of one sample each; of batches a tenth of them
  bool for_others = false;            // leave out the file that repeats the run, which names paths
};

struct Report {
  std::string text;                     // for the terminal
  std::vector<Metric> metrics;          // of the model's quality, and of serving
  std::optional<run::Quality> quality;  // none where the workload measures none
  std::string workload;
  std::filesystem::path page;
};

// Throws Error when the folder holds no run with a checkpoint.
Report make_report(const ReportSettings& settings);

}  // namespace superstep::lab
