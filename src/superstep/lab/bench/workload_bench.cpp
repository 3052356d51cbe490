#include "superstep/lab/bench/workload_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/statistics.h"
#include "superstep/lab/bench/energy_rows.h"
#include "superstep/lab/bench/peers.h"
#include "superstep/lab/bench/timeline.h"
#include "superstep/lab/bench/workload_run.h"
#include "superstep/lab/measure/quantities.h"

namespace superstep::lab {
namespace {

struct Point {
  std::string mode, precision;
  std::int64_t batch;
  std::string gradient;
};

// Of a mode: serving has none.
std::vector<std::string> gradients_of(const WorkloadBenchSettings& settings, const std::string& mode) {
  return mode == "train" ? settings.gradients : std::vector<std::string>{"reverse"};
}

run::TrainSettings model_settings(const WorkloadBenchSettings& settings) {
  return {.workload = settings.workload,
          .target = settings.target,
          .model_options = settings.model_options,
          .shapes = settings.shapes,
          .bounds = settings.bounds,
          .loss = settings.loss,
          .seed = settings.seed};
}

std::vector<std::int64_t> batches_of(const WorkloadBenchSettings& settings, const std::string& mode) {
  if (!settings.batches.empty()) return settings.batches;
  if (run::is_model_file(settings.workload))
    return {std::max<std::int64_t>(1, run::Model(model_settings(settings)).fixed_batch())};
  const std::int64_t own = workload::find_workload(settings.workload).training.batch;
  // Served: one sample at a time, and a batch that fills a machine (chosen).
  return mode == "train" ? std::vector{own} : std::vector<std::int64_t>{1, 512};
}

WorkloadRunSettings run_settings(const WorkloadBenchSettings& settings, const Point& point) {
  WorkloadRunSettings run{.model = model_settings(settings), .trains = point.mode == "train"};
  run.model.precision = point.precision;
  run.model.gradient = point.gradient;
  run.model.batch = point.batch;
  run.model.micro_batch =
      point.batch % std::max<std::int64_t>(1, settings.micro_batch) == 0 ? settings.micro_batch : 0;
  run.threads = settings.threads;
  return run;
}

void add_rates(record::Result& result, const WorkloadRun& run, const Point& point,
               const Measurement& measured, const MachinePeak& peak) {
  const target::PlanSummary plan = run.summary();
  result.quantities.push_back(time_quantity("step_time", measured));
  result.quantities.push_back(
      rate_quantity("throughput", static_cast<double>(point.batch), "samples/s", measured, KeepSamples::yes));
  result.quantities.push_back(rate_quantity("flops_rate", plan.flops, "FLOP/s", measured));
  const double rate = peak_of(peak, point.precision);
  if (rate <= 0) return;
  result.quantities.push_back(rate_quantity("compute_utilization", plan.flops / rate, "", measured));
  result.add("peak_flops", rate, "FLOP/s");
}

// Percentiles of the calls that were timed: a stream of one client.
void add_latencies(record::Result& result, const Measurement& measured) {
  if (measured.calls_per_sample > 1) return;  // a sample is a mean of several calls
  std::vector<double> sorted = measured.samples;
  std::ranges::sort(sorted);
  for (const auto& [share, name] :
       {std::pair{0.5, "latency_p50"}, {0.9, "latency_p90"}, {0.99, "latency_p99"}})
    if (sorted.size() >= record::samples_needed(share)) result.add(name, nearest_rank(sorted, share), "s");
}

void add_loads(record::Result& result, WorkloadRun& run, const WorkloadBenchSettings& settings) {
  for (LoadSettings load : settings.loads) {
    if (load.pattern == LoadPattern::poisson && load.rate <= 0)
      load.rate = settings.load_factor / result.find("step_time")->value;
    const LoadReport report = run_load([&] { run.call(); }, load);
    const std::string name = name_of(load.pattern);
    for (const Metric& metric : metrics_of(report, name + "_")) {
      result.quantities.push_back(record::to_quantity(metric));
      if (metric.name == name + "_latency_mean") result.quantities.back().flags = report.flags;
    }
    if (load.pattern == LoadPattern::poisson) result.add("poisson_rate_offered", load.rate, "requests/s");
  }
}

record::Result describe(const WorkloadBenchSettings& settings, const Point& point, const WorkloadRun& run,
                        std::string check) {
  const target::PlanSummary plan = run.summary();
  record::Result result{.command = "bench", .workload = settings.workload, .mode = point.mode};
  result.id = fmt::format("{}-{}-{}-b{}", settings.workload, point.mode, point.precision, point.batch);
  if (point.gradient != "reverse") result.id += "-" + point.gradient;
  result.machine = settings.target;
  result.flop_per_sample = plan.flops / static_cast<double>(point.batch);
  result.config = {{"framework", "superstep"},        {"precision", point.precision},
                   {"gradient", point.gradient},      {"batch", point.batch},
                   {"micro_batch", plan.micro_batch}, {"threads", settings.threads},
                   {"seed", settings.seed},           {"model_options", settings.model_options},
                   {"data", run.data_source()},       {"checked", std::move(check)}};
  return result;
}

void add_memory(record::Result& result, const target::PlanSummary& plan) {
  result.add("memory_peak", static_cast<double>(plan.bytes_in_all()), "B");
  result.quantities.back().details["source"] = "the plan's allocations";
}

// The peers that run the same file on the same processors, and what became of each.
class PeersBeside {
 public:
  PeersBeside(const WorkloadBenchSettings& settings, const Point& point, record::Result& result,
              std::vector<Contender>& contenders) {
    if (settings.python.empty() || point.mode != "infer" || !run::is_model_file(settings.workload)) return;
    for (const std::string& engine : peer_engines()) {
      auto peer = std::make_unique<Peer>(PeerSettings{.python = settings.python,
                                                      .engine = engine,
                                                      .file = settings.workload,
                                                      .shapes = settings.shapes,
                                                      .precision = point.precision,
                                                      .batch = point.batch,
                                                      .threads = settings.threads});
      result.config["peers"][engine] = peer->is_ready() ? peer->name() : peer->why_not();
      if (!peer->is_ready()) continue;
      Peer* const opened = peer.get();
      contenders.push_back({engine, {}, [opened](std::int64_t calls) { return opened->run(calls); }});
      peers_.push_back(std::move(peer));
    }
  }

  std::size_t count() const { return peers_.size(); }

  // Their times, and how often ours goes into them.
  void tell(record::Result& result, std::span<const Measurement> measured) const {
    const double ours = result.find("step_time")->value;
    for (const Measurement& peer : measured) {
      result.quantities.push_back(time_quantity("time_" + peer.name, peer));
      result.add("ratio_" + peer.name, result.quantities.back().value / ours, "");
    }
  }

 private:
  std::vector<std::unique_ptr<Peer>> peers_;
};

record::Result measure_point(const WorkloadBenchSettings& settings, const Point& point,
                             const MachinePeak& peak) {
  const WorkloadRunSettings what = run_settings(settings, point);
  WorkloadRun run(what);
  record::Result result = describe(settings, point, run, run.check());
  std::vector<Contender> contenders{{result.id, [&] { run.call(); }}};
  if (run.has_data()) contenders.push_back({result.id + " with data", [&] { run.call_with_data(); }});
  PeersBeside peers(settings, point, result, contenders);
  std::vector<Measurement> all = measure_interleaved(contenders, settings.protocol);
  for (int round = 1; round < settings.repeat; ++round) {
    const std::vector<Measurement> more = measure_interleaved(contenders, settings.protocol);
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i].samples.insert(all[i].samples.end(), more[i].samples.begin(), more[i].samples.end());
  }
  add_rates(result, run, point, all[0], peak);
  peers.tell(result, std::span(all).last(peers.count()));
  if (run.has_data())
    result.quantities.push_back(rate_quantity("throughput_with_data", static_cast<double>(point.batch),
                                              "samples/s", all[1], KeepSamples::yes));
  if (point.mode == "infer") {
    add_latencies(result, all[0]);
    add_loads(result, run, settings);
  }
  result.add("compile_time", run.compile_seconds(), "s");
  result.add("first_step_time", all[0].first_call, "s");
  add_memory(result, run.summary());
  if (settings.energy)
    add_energy(
        result, [&] { run.call(); }, static_cast<double>(point.batch));
  if (settings.timeline) {
    WorkloadRunSettings each_step = what;
    each_step.measure_steps = true;
    WorkloadRun measured(each_step);
    result.timeline = record_timeline([&] { measured.call(); }, [&] { return measured.summary(); });
  }
  return result;
}

void check_modes(const std::vector<std::string>& modes) {
  for (const std::string& mode : modes)
    if (mode != "train" && mode != "infer")
      throw Error(ErrorCode::invalid_argument, "there is no such mode", mode, "there are train and infer");
}

}  // namespace

std::size_t count_results(const WorkloadBenchSettings& settings) {
  std::size_t points = 0;
  const bool one_batch = run::is_model_file(settings.workload) && settings.batches.empty();
  for (const std::string& mode : settings.modes)
    points += (one_batch ? 1 : batches_of(settings, mode).size()) * gradients_of(settings, mode).size();
  return points * settings.precisions.size();
}

std::vector<record::Result> bench_workload(const WorkloadBenchSettings& settings, const MachinePeak& peak) {
  check_modes(settings.modes);
  if (!run::is_model_file(settings.workload)) workload::find_workload(settings.workload);
  std::vector<record::Result> results;
  for (const std::string& mode : settings.modes)
    for (const std::int64_t batch : batches_of(settings, mode))
      for (const std::string& precision : settings.precisions)
        for (const std::string& gradient : gradients_of(settings, mode)) {
          results.push_back(measure_point(settings, {mode, precision, batch, gradient}, peak));
          if (settings.done) settings.done(results.back());
        }
  return results;
}

}  // namespace superstep::lab
