// Whole studies of several steps: data, networks, conventional methods and what comes of them, in one folder
// and one page. Each goes on where a call before it was stopped.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/base/options.h"

namespace superstep::workflow {

struct Request {
  std::filesystem::path out;  // a folder of its own; made where it is missing
  int threads = 1;
};

struct Outcome {
  std::vector<Metric> metrics;
  std::string text;            // tables for the terminal
  std::filesystem::path page;  // the report
};

struct Entry {
  std::string name;     // as typed: "conductivity"
  std::string summary;  // one line
  std::vector<OptionSpec> options;
  // Throws Error: interrupted (what is done stays done), invalid_argument where the folder holds a study with
  // other options, and those of its steps.
  Outcome (*run)(const Request& request, const Options& options);
};

// All workflows (workflow/workflows.cpp).
std::span<const Entry> workflows();
const Entry& find_workflow(std::string_view name);  // throws Error (invalid_argument), nearest name

}  // namespace superstep::workflow
