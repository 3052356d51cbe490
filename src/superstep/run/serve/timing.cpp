#include "superstep/run/serve/timing.h"

#include <algorithm>
#include <numeric>

#include "superstep/base/measured_metric.h"
#include "superstep/base/progress.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"

namespace superstep::run {
namespace {

double timed_call(target::Executable& executable, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while timing");
  const Stopwatch watch;
  executable.run(inputs, outputs);
  return watch.seconds();
}

}  // namespace

std::vector<std::vector<double>> time_calls(std::span<target::Executable* const> executables,
                                            std::span<const Tensor> inputs, const TimingEffort& effort) {
  Progress progress = Progress::passing("timing", static_cast<double>(effort.most_calls), "calls");
  std::vector<std::vector<Tensor>> outputs(executables.size());
  for (std::size_t i = 0; i < executables.size(); ++i) {
    for (const auto& port : executables[i]->outputs())
      outputs[i].emplace_back(port.type.element, port.type.shape);
    double warm = 0;
    for (int call = 0; call < effort.warm_up_calls && warm < effort.warm_up_seconds; ++call)
      warm += timed_call(*executables[i], inputs, outputs[i]);
  }
  std::vector<std::vector<double>> seconds(executables.size());
  const Stopwatch watch;
  for (std::int64_t call = 0; call < effort.most_calls; ++call) {
    if (call >= effort.fewest_calls && watch.seconds() > effort.seconds) break;
    for (std::size_t i = 0; i < executables.size(); ++i)
      seconds[i].push_back(timed_call(*executables[i], inputs, outputs[i]));
    progress.update(static_cast<double>(call + 1));
  }
  return seconds;
}

std::vector<Metric> serving_metrics(std::vector<double> seconds, std::int64_t batch) {
  std::ranges::sort(seconds);
  const double mean =
      std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  std::vector<Metric> metrics{
      measured_metric("throughput", static_cast<double>(batch) / nearest_rank(seconds, 0.5), "samples/s"),
      measured_metric("latency_mean", mean, "s"),
      measured_metric("latency_p50", nearest_rank(seconds, 0.5), "s")};
  if (seconds.size() >= 100)
    metrics.push_back(measured_metric("latency_p90", nearest_rank(seconds, 0.9), "s"));
  if (seconds.size() >= 1000)
    metrics.push_back(measured_metric("latency_p99", nearest_rank(seconds, 0.99), "s"));
  return metrics;
}

std::vector<Metric> measure_serving(target::Executable& executable, std::int64_t batch,
                                    std::span<const Tensor> inputs, std::int64_t calls) {
  target::Executable* const only[] = {&executable};
  TimingEffort effort = thorough_timing;
  effort.most_calls = calls;
  return serving_metrics(time_calls(only, inputs, effort)[0], batch);
}

}  // namespace superstep::run
