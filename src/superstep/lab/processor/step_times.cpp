#include "superstep/lab/processor/step_times.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/lab/processor/kernel_measurement.h"
#include "superstep/lab/processor/plan_time.h"

namespace superstep::lab {

using machine::KernelTime;

void BestSteps::add(const target::Timeline& timeline) {
  sums_.assign(timeline.steps.size(), 0);
  counts_.assign(timeline.steps.size(), 0);
  best_.resize(timeline.steps.size(), std::numeric_limits<double>::infinity());
  for (const target::StepEvent& event : timeline.events) {
    sums_[event.step] += event.seconds;
    ++counts_[event.step];
  }
  for (std::size_t i = 0; i < best_.size(); ++i)
    if (counts_[i] > 0) best_[i] = std::min(best_[i], sums_[i] / counts_[i]);
  steps_ = timeline.steps;
}

std::vector<KernelTime> BestSteps::times(const target::PlanSummary& plan) const {
  std::vector<KernelTime> times;
  for (std::size_t i = 0; i < best_.size(); ++i) {
    if (!std::isfinite(best_[i])) continue;
    times.push_back(asked_of(steps_[i], plan));
    times.back().seconds = best_[i];
  }
  return times;
}

KnownSteps::KnownSteps(const std::vector<KernelTime>& measured) {
  for (const KernelTime& step : measured) {
    auto& [sum, count] = known_[{step.kernel, step.flops, step.bytes}];
    sum += step.seconds;
    ++count;
  }
}

double KnownSteps::seconds(const KernelTime& step) const {
  const auto found = known_.find({step.kernel, step.flops, step.bytes});
  return found == known_.end() ? 0 : found->second.first / found->second.second;
}

KnownSteps measure_steps(target::Executable& clocked, bool trains, double seconds) {
  const std::vector<Tensor> inputs = random_inputs(clocked, trains);
  std::vector<Tensor> outputs;
  for (const auto& port : clocked.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  constexpr int least_runs = 3;
  clocked.run(inputs, outputs);
  BestSteps best;
  const Stopwatch watch;
  for (int run = 0; run < least_runs || watch.seconds() < seconds; ++run) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "while measuring steps");
    clocked.run(inputs, outputs);
    best.add(clocked.timeline());
  }
  return KnownSteps(best.times(clocked.summary()));
}

}  // namespace superstep::lab
