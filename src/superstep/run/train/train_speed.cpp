#include "superstep/run/train/train_speed.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/measured_metric.h"
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

}  // namespace

std::vector<Metric> speed_metrics(const SittingTimes& times) {
  const double median = steady_median(times), batch = static_cast<double>(times.batch);
  const double done = static_cast<double>(times.step_seconds.size()) * batch;
  std::vector<Metric> metrics{measured_metric("throughput", batch / median, "samples/s"),
                              measured_metric("throughput_with_data", done / times.elapsed, "samples/s"),
                              measured_metric("step_time", median, "s"),
                              measured_metric("flops_rate", times.flops / median, "FLOP/s"),
                              measured_metric("data_wait", times.waited, "s")};
  if (times.to_solution) metrics.push_back(measured_metric("time_to_solution", *times.to_solution, "s"));
  metrics.push_back(measured_metric("compile_time", times.compile_seconds, "s"));
  return metrics;
}

std::vector<Metric> rehearsal_metrics(const RehearsalTimes& times) {
  const double step = steady_median({.step_seconds = times.step_seconds});
  const double training = step * static_cast<double>(times.steps);
  const double validation = std::floor(times.epochs) * times.validation + times.last_validation;
  return {measured_metric("step_time", step, "s"), measured_metric("expected_training_time", training, "s"),
          measured_metric("expected_validation_time", validation, "s"),
          measured_metric("expected_time", training + validation, "s"),
          measured_metric("compile_time", times.compile_seconds, "s")};
}

std::vector<Metric> exchange_metrics(const GradientExchange& exchange) {
  return {measured_metric("communication_time", quantile(exchange.communication(), 0.5), "s"),
          measured_metric("exposed_communication_time", quantile(exchange.exposed(), 0.5), "s"),
          measured_metric("waiting_time", quantile(exchange.waiting(), 0.5), "s"),
          measured_metric("gradient_bytes", exchange.bytes(), "B")};
}

}  // namespace superstep::run
