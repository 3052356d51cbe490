#include "superstep/lab/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/base/error.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"

namespace superstep::lab {
namespace {

using target::Executable;

// Readings in a row, as around steps.
double seconds_of_a_reading() {
  constexpr int readings = 2000;
  const double begun = monotonic_seconds();
  double last = begun;
  for (int i = 0; i < readings; ++i) last = std::max(last, monotonic_seconds());
  return (last - begun) / readings;
}

struct Tensors {
  std::vector<Tensor> inputs, outputs;

  Tensors(const Executable& executable, const ProfiledModel& model) {
    for (const auto& port : executable.inputs()) inputs.emplace_back(port.type.element, port.type.shape);
    for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
    model.fill(inputs);
  }
};

double timed_run(Executable& executable, Tensors& tensors) {
  if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while profiling");
  const Stopwatch watch;
  executable.run(tensors.inputs, tensors.outputs);
  return watch.seconds();
}

// Runs of a plan with clocks around its steps, in turn with runs of the same plan without.
class Measurement {
 public:
  Measurement(const target::Target& target, const ProfiledModel& model, const ProfileSettings& settings)
      : plain_(compile(target, model, settings, false)),
        clocked_(compile(target, model, settings, true)),
        plain_tensors_(*plain_, model),
        clocked_tensors_(*clocked_, model) {}

  void run(int runs) {
    for (int i = 0; i < std::max(1, runs / 3); ++i) {
      timed_run(*plain_, plain_tensors_);
      timed_run(*clocked_, clocked_tensors_);
    }
    for (int i = 0; i < runs; ++i) {
      plain_seconds_.push_back(timed_run(*plain_, plain_tensors_));
      clocked_seconds_.push_back(timed_run(*clocked_, clocked_tensors_));
      timelines_.push_back(clocked_->timeline());
    }
  }

  const std::vector<target::Timeline>& timelines() const { return timelines_; }
  double plain_seconds() const { return median(plain_seconds_); }
  double clocked_seconds() const { return median(clocked_seconds_); }
  target::PlanSummary summary() const { return clocked_->summary(); }

  // The run whose time lies in the middle: neither lucky nor disturbed.
  const target::Timeline& middle() const {
    std::vector<const target::Timeline*> order;
    for (const target::Timeline& timeline : timelines_) order.push_back(&timeline);
    std::ranges::sort(order, {}, [](const target::Timeline* timeline) { return timeline->seconds; });
    return *order[order.size() / 2];
  }

 private:
  static std::unique_ptr<Executable> compile(const target::Target& target, const ProfiledModel& model,
                                             const ProfileSettings& settings, bool measured) {
    return target.compile(model.graph,
                          {.batch = settings.batch,
                           .micro_batch = model.fixed_batch ? settings.batch : settings.micro_batch,
                           .threads = settings.threads,
                           .measure_steps = measured});
  }

  std::unique_ptr<Executable> plain_, clocked_;
  Tensors plain_tensors_, clocked_tensors_;
  std::vector<double> plain_seconds_, clocked_seconds_;
  std::vector<target::Timeline> timelines_;
};

std::vector<StepProfile> profile_steps(const std::vector<target::Timeline>& timelines,
                                       const MachineFloor& machine) {
  std::vector<StepProfile> steps;
  for (const target::PlanStep& step : timelines.front().steps)
    steps.push_back({.step = step, .floor = floor_of(step, machine)});
  std::vector<std::vector<double>> seconds(steps.size());
  for (const target::Timeline& timeline : timelines)
    for (const target::StepEvent& event : timeline.events) seconds[event.step].push_back(event.seconds);
  // Steps of the last run only: `prepare` of an inference ran in the warm-up and costs nothing afterwards.
  for (const target::StepEvent& event : timelines.back().events) {
    ++steps[event.step].executions;
    steps[event.step].threads = event.threads;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].seconds = median(seconds[i]);
  std::erase_if(steps, [](const StepProfile& step) { return step.executions == 0; });
  return steps;
}

std::vector<OperatorProfile> profile_operators(const std::vector<StepProfile>& steps) {
  std::map<std::string, OperatorProfile> by_name;
  for (const StepProfile& step : steps) {
    OperatorProfile& entry = by_name[step.step.op.substr(0, step.step.op.find('+'))];
    ++entry.steps;
    entry.seconds += step.total();
    entry.floor_seconds += step.total_floor();
    entry.flops += step.step.flops * static_cast<double>(step.executions);
  }
  std::vector<OperatorProfile> operators;
  for (auto& [op, entry] : by_name) {
    entry.op = op;
    operators.push_back(entry);
  }
  std::ranges::stable_sort(operators, std::greater(), &OperatorProfile::seconds);
  return operators;
}

}  // namespace

Profile measure_profile(const target::Target& target, const ProfiledModel& model,
                        const ProfileSettings& settings, const MachineFloor& machine) {
  Measurement measurement(target, model, settings);
  measurement.run(std::max(3, settings.runs));
  if (measurement.timelines().front().steps.empty())
    throw Error(ErrorCode::unsupported, "this target does not measure its steps", std::string(target.name()));
  Profile profile{.name = model.name,
                  .mode = model.mode,
                  .precision = model.precision,
                  .plan = measurement.summary(),
                  .machine = machine,
                  .steps = profile_steps(measurement.timelines(), machine),
                  .operators = {},
                  .timeline = measurement.middle(),
                  .seconds = measurement.plain_seconds(),
                  .measured_seconds = measurement.clocked_seconds(),
                  .clock_seconds = seconds_of_a_reading()};
  profile.operators = profile_operators(profile.steps);
  for (const StepProfile& step : profile.steps) {
    profile.busy_seconds += step.total();
    profile.floor_seconds += step.total_floor();
  }
  return profile;
}

}  // namespace superstep::lab
