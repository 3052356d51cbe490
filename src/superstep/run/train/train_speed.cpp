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

namespace {

Metric expected(std::string name, double value, double low, double high) {
  return {.name = std::move(name),
          .value = value,
          .unit = "s",
          .how = How::predicted,
          .samples = {},
          .low = low,
          .high = high};
}

}  // namespace

std::vector<Metric> rehearsal_metrics(const RehearsalTimes& times) {
  const auto steady = times.step_seconds.subspan(times.step_seconds.size() > 1 ? 1 : 0);
  const auto training = [&](double share) {
    return quantile(steady, share) * static_cast<double>(times.steps);
  };
  const double validation = std::floor(times.epochs) * times.validation + times.last_validation;
  const double low = training(0.1), middle = training(0.5), high = training(0.9);
  return {measured_metric("step_time", quantile(steady, 0.5), "s"),
          expected("expected_training_time", middle, low, high),
          {.name = "expected_validation_time",
           .value = validation,
           .unit = "s",
           .how = How::predicted,
           .samples = {}},
          expected("expected_time", middle + validation, low + validation, high + validation),
          measured_metric("compile_time", times.compile_seconds, "s")};
}

std::vector<Metric> exchange_metrics(const GradientExchange& exchange) {
  return {measured_metric("communication_time", quantile(exchange.communication(), 0.5), "s"),
          measured_metric("exposed_communication_time", quantile(exchange.exposed(), 0.5), "s"),
          measured_metric("waiting_time", quantile(exchange.waiting(), 0.5), "s"),
          measured_metric("gradient_bytes", exchange.bytes(), "B")};
}

}  // namespace superstep::run
