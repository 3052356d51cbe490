// The conventional methods that the models replace: fits, iterative reconstructions, solvers.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/base/options.h"
#include "superstep/base/thread_pool.h"

namespace superstep::baseline {

struct Request {
  std::filesystem::path input;
  std::filesystem::path output;   // may be empty: only the metrics are wanted
  std::filesystem::path picture;  // an HTML page to draw the result in; may be empty
  ThreadPool* pool = nullptr;     // never null
};

struct Report {
  std::vector<Metric> metrics;  // what it reached, and how fast
  std::string text;             // a table for the terminal; may be empty
};

struct Entry {
  std::string name;     // the workload's id
  std::string summary;  // the method, in one line
  std::vector<OptionSpec> options;
  Report (*run)(const Request& request, const Options& options);
};

// All conventional methods (baseline/baselines.cpp).
std::span<const Entry> baselines();
const Entry& find_baseline(std::string_view name);  // throws Error (invalid_argument), nearest name

}  // namespace superstep::baseline
