// Generating a workload's data and running its conventional method, as the program does.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/baseline/baseline.h"
#include "superstep/physics/generator.h"
#include "tests/scratch.h"

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

inline Report run_baseline(const std::string& workload, const std::filesystem::path& input,
                           const std::filesystem::path& output = {},
                           const std::vector<std::string>& settings = {}) {
  return BaselineRun{workload, input, output, {}, settings}();
}

inline void generate(const std::string& workload, const std::filesystem::path& path, std::uint64_t samples,
                     const std::vector<std::string>& settings = {}) {
  ThreadPool pool(2);
  const data::GeneratorEntry& entry = data::find_generator(workload);
  entry.make(Options(entry.options, settings))->write({path, 1, samples, &pool});
}

// NaN when the report has no such metric.
inline double metric(const Report& report, const std::string& name) {
  for (const Metric& each : report.metrics)
    if (each.name == name) return each.value;
  return std::nan("");
}

}  // namespace superstep::baseline
