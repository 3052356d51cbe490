#include "superstep/lab/advise/here.h"

#include <fmt/format.h>

#include "superstep/lab/bench/workload_bench.h"

namespace superstep::lab {
namespace {

// A second a configuration: an interval of some per cent says which machine is ahead (chosen).
constexpr Protocol brief{
    .warm_up_calls = 3, .warm_up_seconds = 0.2, .warm_up_limit = 5, .interval = 0.05, .budget_seconds = 1};

WorkloadBenchSettings bench_of(const AdviseSettings& settings) {
  WorkloadBenchSettings bench{.workload = settings.model.workload};
  bench.shapes = settings.model.shapes;
  bench.bounds = settings.model.bounds;
  bench.loss = settings.model.loss;
  bench.model_options = settings.model.model_options;
  bench.modes = {settings.trains ? "train" : "infer"};
  bench.precisions = {"f32", "bf16"};
  bench.threads = settings.threads;
  bench.protocol = brief;
  if (settings.model.batch > 0 && settings.trains) bench.batches = {settings.model.batch};
  if (!settings.trains && !run::is_model_file(settings.model.workload)) {
    constexpr std::int64_t together = 64;  // chosen: what a server gathers in some milliseconds
    bench.batches = settings.goal == Goal::latency ? std::vector<std::int64_t>{1}
                                                   : std::vector<std::int64_t>{1, together};
  }
  return bench;
}

Figure figure_here(Goal goal, const Measured& measured, double recipe_samples) {
  const double n = measured.samples;
  switch (goal) {
    case Goal::throughput: return {n / measured.seconds, n / measured.high, n / measured.low};
    case Goal::latency: return {measured.seconds, measured.low, measured.high};
    case Goal::time_to_quality: {
      const double calls = recipe_samples / n;
      return {calls * measured.seconds, calls * measured.low, calls * measured.high};
    }
    case Goal::energy:
    case Goal::cost: return {};
  }
  return {};
}

}  // namespace

std::vector<Measured> measure_here(const AdviseSettings& settings, double recipe_samples) {
  std::vector<Measured> all;
  for (const record::Result& result : bench_workload(bench_of(settings), {})) {
    const record::Quantity* time = result.find("step_time");
    if (!time) continue;
    Measured measured;
    measured.samples = result.config.value("batch", 1.0);
    measured.seconds = time->value;
    measured.low = time->low.value_or(time->value);
    measured.high = time->high.value_or(time->value);
    measured.what = fmt::format("{}, batch {:.0f}, {}, {} threads", result.mode, measured.samples,
                                result.config.value("precision", "f32"), settings.threads);
    measured.figure = figure_here(settings.goal, measured, recipe_samples);
    all.push_back(std::move(measured));
  }
  return all;
}

}  // namespace superstep::lab
