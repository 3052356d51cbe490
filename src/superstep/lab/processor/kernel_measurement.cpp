#include "superstep/lab/processor/kernel_measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/lab/bench/primitive_graph.h"
#include "superstep/lab/machine/peak_kernels.h"
#include "superstep/lab/processor/plan_time.h"
#include "superstep/lab/processor/probes.h"
#include "superstep/lab/processor/step_times.h"

namespace superstep::lab {
namespace {

using machine::KernelTime;
using machine::KernelTimes;

// Runs that are timed at least, and at most: the best counts, which a busy neighbour leaves alone now and
// then.
constexpr int least_runs = 5, most_runs = 60;

class ProbeRun {
 public:
  ProbeRun(const Probe& probe, int threads, bool clocked) {
    executable_ = target::find_target("cpu").compile(probe.graph, {.batch = probe.batch,
                                                                   .micro_batch = probe.micro_batch,
                                                                   .threads = threads,
                                                                   .measure_steps = clocked});
    inputs_ = random_inputs(*executable_, probe.trains);
    for (const auto& port : executable_->outputs()) outputs_.emplace_back(port.type.element, port.type.shape);
  }

  double run() {
    const Stopwatch watch;
    executable_->run(inputs_, outputs_);
    return watch.seconds();
  }
  const target::Executable& executable() const { return *executable_; }

 private:
  std::unique_ptr<target::Executable> executable_;
  std::vector<Tensor> inputs_, outputs_;
};

// A probe at a number of threads: the best time of a run, and of each of its steps.
struct Measured {
  int probe = 0;
  target::PlanSummary plan;
  bool trains = false;
  double seconds = 0;
  std::vector<KernelTime> steps;  // in the order of the plan's prepare, steps and update
};

Measured measure_probe(const Probe& probe, int threads, double budget) {
  ProbeRun plain(probe, threads, false), clocked(probe, threads, true);
  Measured measured{.probe = 0,
                    .plan = {},
                    .trains = probe.trains,
                    .seconds = std::numeric_limits<double>::infinity(),
                    .steps = {}};
  plain.run();
  clocked.run();
  BestSteps best;
  const Stopwatch watch;
  for (int run = 0; run < least_runs || (run < most_runs && watch.seconds() < budget); ++run) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "while measuring kernels");
    measured.seconds = std::min(measured.seconds, plain.run());
    clocked.run();
    best.add(clocked.executable().timeline());
  }
  measured.plan = plain.executable().summary();
  measured.steps = best.times(measured.plan);
  return measured;
}

// Of equal steps one, with the median of their times.
std::vector<KernelTime> joined(const std::vector<KernelTime>& times) {
  using Key = std::tuple<std::string, double, double, int, int, int>;
  std::map<Key, std::vector<const KernelTime*>> same;
  for (const KernelTime& time : times)
    same[{time.kernel, time.flops, time.bytes, time.sharing, time.busy,
          static_cast<int>(std::log2(1 + time.working_set))}]
        .push_back(&time);
  std::vector<KernelTime> found;
  for (const auto& [key, members] : same) {
    std::vector<double> seconds;
    for (const KernelTime* member : members) seconds.push_back(member->seconds);
    found.push_back(*members.front());
    found.back().seconds = median(seconds);
  }
  return found;
}

// The time of a plan by its own steps, as they were measured.
PlanTime by_own_steps(const Measured& measured) {
  const KnownSteps known(measured.steps);
  return plan_time(measured.plan, measured.trains,
                   [&](const KernelTime& step) { return known.seconds(step); });
}

// Runs that are over before a busy neighbour takes the processor: what they take beyond their steps is a
// step's own.
constexpr double short_run = 200e-6;

double overhead_of_steps(const std::vector<Measured>& all) {
  std::vector<double> overheads;
  for (const Measured& measured : all) {
    if (measured.seconds > short_run || measured.plan.threads > 1) continue;
    const PlanTime own = by_own_steps(measured);
    overheads.push_back((measured.seconds - own.total()) / std::max(1.0, own.executions));
  }
  return overheads.empty() ? 0 : std::max(0.0, median(overheads));
}

// The quantile that leaves a fifth outside.
constexpr double coverage = 0.8;

// Every plan by the steps of all other probes, held against its own: both are sums of best times, which busy
// neighbours leave alone.
double error_of_others(const std::vector<Measured>& all, machine::ThreadPeaks peaks) {
  std::vector<KernelTime> every;
  std::vector<int> groups;
  for (const Measured& measured : all)
    for (const KernelTime& step : measured.steps) {
      every.push_back(step);
      groups.push_back(measured.probe);
    }
  KernelTimes kernels(every, peaks);
  kernels.set_groups(groups);
  std::vector<double> errors;
  for (const Measured& measured : all) {
    const PlanTime time = plan_time(measured.plan, measured.trains, [&](const KernelTime& step) {
      return kernels.estimate(step, measured.probe).seconds;
    });
    errors.push_back(std::abs(std::log(time.total() / by_own_steps(measured).total())));
  }
  std::ranges::sort(errors);
  return errors.empty() ? 0 : nearest_rank(errors, coverage);
}

}  // namespace

std::vector<Tensor> random_inputs(const target::Executable& executable, bool trains) {
  std::vector<Tensor> inputs;
  for (const auto& port : executable.inputs()) {
    inputs.emplace_back(port.type.element, port.type.shape);
    if (is_floating(port.type.element)) fill_random(inputs.back(), inputs.size(), 1);
  }
  if (trains) inputs.back() = Tensor::scalar(1e-9f);
  return inputs;
}

namespace {

std::vector<int> thread_counts(int most) { return most == 1 ? std::vector{1} : std::vector{1, most}; }

}  // namespace

machine::ProcessorTimes measure_kernels(const KernelMeasurementSettings& settings) {
  machine::ProcessorTimes times{.instructions = vector_target(), .threads = settings.threads, .times = {}};
  std::vector<Measured> all;
  std::vector<KernelTime> every;
  for (std::uint64_t number = 0; number < std::min(settings.probes, probe_count); ++number) {
    const Probe what = probe(number);
    if (settings.progress)
      settings.progress(fmt::format("kernels, probe {} of {}", number + 1, settings.probes));
    for (const int threads : thread_counts(settings.threads)) {
      all.push_back(measure_probe(what, threads, settings.seconds_a_probe));
      all.back().probe = static_cast<int>(number);
      every.insert(every.end(), all.back().steps.begin(), all.back().steps.end());
    }
  }
  times.step_overhead = overhead_of_steps(all);
  times.uncertainty = error_of_others(all, settings.peaks);
  times.times = joined(every);
  return times;
}

}  // namespace superstep::lab
