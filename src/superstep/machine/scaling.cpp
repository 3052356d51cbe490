#include "superstep/machine/scaling.h"

#include <algorithm>
#include <map>

namespace superstep::machine {
namespace {

std::vector<int> replica_counts(int most) {
  std::vector<int> counts;
  for (int n = 1; n < most; n *= 2) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

// The samples of a step over `replicas`; nothing where there are too few.
bool share(PredictSettings& settings, std::int64_t samples, int replicas) {
  settings.replicas = replicas;
  const std::int64_t each = samples / replicas;
  if (each < 1) return false;
  settings.micro_batch = std::min(settings.micro_batch, each);
  settings.accumulate = static_cast<int>(std::max<std::int64_t>(1, each / settings.micro_batch));
  return true;
}

}  // namespace

std::vector<ScalingPoint> scaling_of(const Machine& machine,
                                     const std::function<graph::Graph(std::int64_t)>& graph_at,
                                     const PredictSettings& settings, int most, Scaling scaling,
                                     const std::function<void(const ScalingPoint&)>& seen) {
  const std::int64_t samples = settings.micro_batch * settings.accumulate;
  std::map<std::int64_t, graph::Graph> graphs;
  std::vector<ScalingPoint> points;
  for (const int replicas : replica_counts(most)) {
    PredictSettings chosen = settings;
    chosen.replicas = replicas;
    if (scaling == Scaling::strong && !share(chosen, samples, replicas)) break;
    if (!graphs.contains(chosen.micro_batch))
      graphs.emplace(chosen.micro_batch, graph_at(chosen.micro_batch));
    const Prediction found = predict(machine, graphs.at(chosen.micro_batch), chosen);
    ScalingPoint point{.replicas = replicas,
                       .micro_batch = chosen.micro_batch,
                       .accumulate = chosen.accumulate,
                       .fits = found.fits,
                       .samples = found.samples,
                       .step_seconds = found.step_seconds_with_data,
                       .collective_seconds = found.step.collective,
                       .low = found.fed.low,
                       .high = found.fed.high};
    const double alone = points.empty() ? point.throughput() : points.front().throughput();
    point.efficiency = point.throughput() / replicas / alone;
    points.push_back(point);
    if (seen) seen(point);
  }
  return points;
}

}  // namespace superstep::machine
