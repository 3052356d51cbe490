// The report of a training run: one table for the terminal, one page to look at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/metric.h"

namespace superstep::lab {

struct ReportSettings {
  std::filesystem::path run;        // the run's folder
  std::filesystem::path out;        // folder for index.html
  std::int64_t samples = 20000;     // fresh samples that the comparison is made on
  std::uint64_t seed = 0x5eed0000;  // of the fresh samples: not one that training data have
  int threads = 1;
};

struct Report {
  std::string text;             // for the terminal
  std::vector<Metric> metrics;  // of the model on the fresh samples, and of serving
  std::string workload;
  std::filesystem::path page;
};

// Throws Error when the folder holds no run with a checkpoint.
Report make_report(const ReportSettings& settings);

}  // namespace superstep::lab
