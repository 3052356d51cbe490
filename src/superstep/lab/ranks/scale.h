// Strong and weak scaling over ranks: throughput, efficiency, what does not scale, and where the time goes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::lab {

enum class ScaleMode { strong, weak };  // the same batch in all; the same batch a rank

struct ScaleSettings {
  std::string workload;
  ScaleMode mode = ScaleMode::weak;
  std::vector<int> ranks{1, 2};
  std::int64_t batch = 0;  // strong: in all; weak: a rank's. 0: the workload's own
  std::int64_t steps = 50, samples = 0;
  int threads = 1;  // of each rank
  int repeat = 3;   // runs of each number of ranks, interleaved
  std::string precision = "f32", launcher = "mpirun";
  std::function<void(const std::string& what)> progress = {};
};

// Starts `superstep train` under the launcher for every number of ranks. Throws Error when a run does not end
// well, with what it said. One result a number of ranks; those beyond the first have scaling_efficiency
// against the smallest, and communication_time and waiting_time of a step.
std::vector<record::Result> measure_scaling(const ScaleSettings& settings);

// Efficiency of n units against m: weak throughput(n) / (n / m throughput(m)); strong the same, since the
// work is the same: t(m) m / (n t(n)).
double scaling_efficiency(double throughput, int units, double smallest_throughput, int smallest_units);

// The share f of the work that is done in parallel, by Amdahl's law from the speedup s of n over m units:
// with r = n / m, s = 1 / (1 - f + f / r). NaN where r is 1.
double parallel_fraction(double speedup, double unit_ratio);
// The same where it is a share, 0 to 1: none where noise, or ranks that slow each other down, leave it open.
std::optional<double> determined_fraction(double speedup, double unit_ratio);

std::string scaling_table(const std::vector<record::Result>& results);

}  // namespace superstep::lab
