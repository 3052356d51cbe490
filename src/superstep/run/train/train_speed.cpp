#include "superstep/run/train/train_speed.h"

#include <algorithm>

#include "superstep/base/statistics.h"

namespace superstep::run {
namespace {

double steady_median(const SittingTimes& times) {
  const auto warm = static_cast<std::ptrdiff_t>(
      std::min<std::size_t>(static_cast<std::size_t>(times.steps_an_epoch), times.step_seconds.size() - 1));
  std::vector<double> steady(times.step_seconds.begin() + warm, times.step_seconds.end());
  std::ranges::sort(steady);
  return steady[steady.size() / 2];
}

Metric metric(const char* name, double value, const char* unit) {
  return {.name = name, .value = value, .unit = unit};
}

}  // namespace

std::vector<Metric> speed_metrics(const SittingTimes& times) {
  const double median = steady_median(times), batch = static_cast<double>(times.batch);
  const double done = static_cast<double>(times.step_seconds.size()) * batch;
  std::vector<Metric> metrics{
      metric("throughput", batch / median, "samples/s"),
      metric("throughput_with_data", done / times.elapsed, "samples/s"), metric("step_time", median, "s"),
      metric("flops_rate", times.flops / median, "FLOP/s"), metric("data_wait", times.waited, "s")};
  if (times.to_solution) metrics.push_back(metric("time_to_solution", *times.to_solution, "s"));
  metrics.push_back(metric("compile_time", times.compile_seconds, "s"));
  return metrics;
}

std::vector<Metric> exchange_metrics(const GradientExchange& exchange) {
  return {metric("communication_time", quantile(exchange.communication(), 0.5), "s"),
          metric("exposed_communication_time", quantile(exchange.exposed(), 0.5), "s"),
          metric("waiting_time", quantile(exchange.waiting(), 0.5), "s"),
          metric("gradient_bytes", exchange.bytes(), "B")};
}

}  // namespace superstep::run
