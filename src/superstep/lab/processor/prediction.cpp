#include "superstep/lab/processor/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/user_folders.h"
#include "superstep/base/text.h"
#include "superstep/lab/machine/host_machine.h"
#include "superstep/lab/machine/peak_kernels.h"
#include "superstep/lab/processor/kernel_measurement.h"
#include "superstep/lab/processor/step_times.h"
#include "superstep/record/environment.h"

namespace superstep::lab {
namespace {

using target::PlanStep;
using target::PlanSummary;

// A plan whose time lies to a quarter in kernels that nobody measured is a guess (chosen).
constexpr double most_unknown = 0.25;
constexpr std::size_t least_runs = 3;

machine::ThreadPeaks peaks_of(const machine::Machine& machine) {
  const double threads = std::max(1.0, machine.value("processors"));
  const double cache =
      machine.value("cache_rate") > 0 ? machine.value("cache_rate") : machine.value("memory_rate");
  return {.flops = machine.value("peak_f32") / threads,
          .bytes = cache / threads,
          .memory_bytes = machine.value("memory_rate") / threads,
          .cache = machine.value("cache")};
}

void add_bounds(const machine::Machine& machine, ProcessorPrediction& prediction) {
  const PlanSummary& plan = prediction.plan;
  const double micro_batches = static_cast<double>(plan.batch / std::max<std::int64_t>(1, plan.micro_batch));
  const double share = std::min(1.0, plan.threads / std::max(1.0, machine.value("processors")));
  for (const ProcessorStep& of : prediction.steps) {
    const bool narrow = of.step.arithmetic == ElementType::bf16 || of.step.arithmetic == ElementType::f16;
    const double rate = machine.value(narrow ? "peak_f16" : "peak_f32") * share;
    const double times = of.step.part == target::PlanPart::body ? micro_batches : 1;
    const double compute = times * of.step.flops / rate;
    prediction.peak_seconds += compute;
    prediction.roofline_seconds += std::max(compute, times * of.step.bytes / machine.value("memory_rate"));
  }
}

void add_beyond(const machine::ProcessorTimes& times, ProcessorPrediction& prediction) {
  if (prediction.unknown_share > most_unknown)
    prediction.beyond.push_back(fmt::format(
        "{:.0f} % of the time would lie in kernels that were not measured", 100 * prediction.unknown_share));
  if (prediction.plan.threads > times.threads)
    prediction.beyond.push_back(fmt::format("kernels were measured with {} threads at most", times.threads));
}

}  // namespace

ProcessorPrediction predict_plan(const machine::Machine& machine, const PlanSummary& plan, bool trains) {
  if (!machine.processor())
    throw Error(ErrorCode::invalid_argument, "has no times of kernels ([kernels])", machine.file(),
                "superstep machine measure --out FILE.toml writes them");
  const machine::ProcessorTimes& times = *machine.processor();
  if (times.instructions != vector_target())
    throw Error(ErrorCode::unsupported,
                fmt::format("its kernels use {}, those of this computer {}: plans differ", times.instructions,
                            vector_target()),
                machine.file(), "predict on the computer itself");
  const machine::KernelTimes kernels(times.times, peaks_of(machine));
  ProcessorPrediction prediction{.plan = plan, .memory = static_cast<double>(plan.bytes_in_all())};
  double unknown = 0, all = 0;
  const StepSeconds seconds_of = [&](const machine::KernelTime& step) {
    return kernels.estimate(step).seconds;
  };
  for (const auto* part : {&plan.prepare, &plan.steps, &plan.update})
    for (const PlanStep& step : *part) {
      const auto estimate = kernels.estimate(asked_of(step, plan));
      prediction.steps.push_back({.step = step, .seconds = estimate.seconds, .known = estimate.known});
      all += estimate.seconds;
      if (!estimate.known) unknown += estimate.seconds;
    }
  prediction.parts = plan_time(plan, trains, seconds_of);
  prediction.seconds = prediction.parts.total() + times.step_overhead * prediction.parts.executions;
  prediction.uncertainty = times.uncertainty;
  prediction.unknown_share = all > 0 ? unknown / all : 0;
  prediction.memory_limit = machine.value("memory");
  add_bounds(machine, prediction);
  add_beyond(times, prediction);
  return prediction;
}

void measure_steps_of(ProcessorPrediction& prediction, target::Executable& clocked, bool trains,
                      double seconds) {
  const KnownSteps known = measure_steps(clocked, trains, seconds);
  for (ProcessorStep& of : prediction.steps) of.measured = known.seconds(asked_of(of.step, prediction.plan));
}

MeasuredRuns measure_runs(target::Executable& executable, bool trains, double seconds) {
  std::vector<Tensor> inputs = random_inputs(executable, trains), outputs;
  for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  std::vector<double> times;
  const Stopwatch all;
  executable.run(inputs, outputs);
  while (times.size() < least_runs || all.seconds() < seconds) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "while measuring");
    const Stopwatch watch;
    executable.run(inputs, outputs);
    times.push_back(watch.seconds());
  }
  return {.best = std::ranges::min(times), .median = median(times), .runs = times.size()};
}

namespace {

std::filesystem::path kept_file() { return user_cache_folder() / "cpu.toml"; }

}  // namespace

std::optional<machine::Machine> measured_computer(int threads) {
  const std::filesystem::path path = kept_file();
  if (!std::filesystem::exists(path)) return std::nullopt;
  const nlohmann::json host = record::environment_record(threads)["host"];
  const std::string name = host["processor"].is_string() ? host["processor"].get<std::string>() : "processor";
  machine::Machine kept = machine::find_machine(path.string());
  const auto& times = kept.processor();
  const bool same = kept.name() == name && times && times->instructions == vector_target();
  return same && times->threads >= threads ? std::optional(std::move(kept)) : std::nullopt;
}

machine::Machine this_computer(int threads, const std::function<void(const std::string& what)>& progress) {
  if (auto kept = measured_computer(threads)) return std::move(*kept);
  const std::filesystem::path path = kept_file();
  progress("this computer is measured once, which takes a minute or two");
  const HostMachine measured = measure_host({.id = "cpu", .threads = threads, .progress = progress});
  write_file_atomically(path, to_toml(measured));
  return machine::find_machine(path.string());
}

}  // namespace superstep::lab
