// How a run grows over many units: the same predictions at 1, 2, 4 ... replicas.
#pragma once

#include <functional>
#include <vector>

#include "superstep/machine/predict.h"

namespace superstep::machine {

// weak: every replica keeps its samples of a step; strong: the samples of a step stay, and replicas share
// them: first there are fewer micro-batches a step, then smaller ones.
enum class Scaling : std::uint8_t { weak, strong };

struct ScalingPoint {
  int replicas = 1;
  std::int64_t micro_batch = 1;
  int accumulate = 1;
  bool fits = true;
  double samples = 0, step_seconds = 0, collective_seconds = 0;  // of a step, fed
  double low = 0, high = 0;                                      // 80 % of step_seconds
  double efficiency = 0;  // throughput a replica, of that of the first point
  double throughput() const { return samples / step_seconds; }
};

// Points at 1, 2, 4 ... up to `most` replicas, and `most` itself; a strong one ends where a replica would
// have less than one sample. `seen` is called after each. Throws what predict() throws.
std::vector<ScalingPoint> scaling_of(const Machine& machine,
                                     const std::function<graph::Graph(std::int64_t)>& graph_at,
                                     const PredictSettings& settings, int most, Scaling scaling,
                                     const std::function<void(const ScalingPoint&)>& seen = {});

}  // namespace superstep::machine
