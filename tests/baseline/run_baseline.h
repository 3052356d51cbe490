// Runs a conventional method by name, as the command line does.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

struct BaselineRun {
  std::string name;
  std::filesystem::path input, output, picture;
  std::vector<std::string> settings;
  Report operator()() const {
    ThreadPool pool(2);
    const Entry& entry = find_baseline(name);
    return entry.run({input, output, picture, &pool}, Options(entry.options, settings));
  }
};

// NaN when the report has no such metric.
inline double metric(const Report& report, const std::string& name) {
  for (const Metric& m : report.metrics)
    if (m.name == name) return m.value;
  return std::nan("");
}

}  // namespace superstep::baseline
