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
// What the tests of the conventional methods share: generated input, a run, its metrics.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/baseline/baseline.h"
#include "superstep/data/generator.h"
#include "tests/data/scratch.h"

namespace superstep::baseline {

inline void generate(const std::string& workload, const std::filesystem::path& path, std::uint64_t samples,
                     const std::vector<std::string>& settings = {}) {
  ThreadPool pool(2);
  const data::GeneratorEntry& entry = data::find_generator(workload);
  entry.make(Options(entry.options, settings))->write({path, 1, samples, &pool});
}

inline Report run_baseline(const std::string& workload, const std::filesystem::path& input,
                           const std::filesystem::path& output = {},
                           const std::vector<std::string>& settings = {}) {
  ThreadPool pool(2);
  const Entry& entry = find_baseline(workload);
  return entry.run({input, output, {}, &pool}, Options(entry.options, settings));
}

inline double metric(const Report& report, const std::string& name) {
  for (const Metric& each : report.metrics)
    if (each.name == name) return each.value;
  throw Error(ErrorCode::internal, "no such metric", name);
}

}  // namespace superstep::baseline
