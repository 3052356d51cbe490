#include "superstep/lab/validate/application_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "superstep/base/text.h"
#include "superstep/lab/primitive/prediction.h"
#include "superstep/lab/validate/language_rows.h"
#include "superstep/lab/validate/primitive_graph.h"
#include "superstep/workload/workload.h"

namespace superstep::lab {

using machine::Machine;
using machine::Prediction;

namespace {

bool known_machine(const std::string& id) {
  return std::any_of(machine::machines().begin(), machine::machines().end(),
                     [&](const Machine& machine) { return machine.id() == id; });
}

RowPrediction refusal(std::string reason) { return {.value = std::nullopt, .reason = std::move(reason)}; }

// Seconds of a step as a row counts them.
struct StepTime {
  double seconds = 0, low = 0, high = 0;
  std::string bound_by;
  double peak = 0, roofline = 0;
};

// Primitives are timed on the machine; a model is fed by its host, unless a note says "pipeline not counted".
// Of a primitive, or where a metric says so, of the machine alone; else with the host that feeds it.
StepTime step_time(const Prediction& prediction, bool primitive, const std::string& metric,
                   const std::string& note) {
  const machine::FedInterval& fed = prediction.fed;
  if (primitive || metric.starts_with("time") || metric == "compute_utilization" ||
      metric == "compute_rate") {
    const double up = std::exp(prediction.uncertainty), seconds = prediction.step_seconds;
    return {seconds,
            seconds / up,
            seconds * up,
            prediction.bound_by(),
            prediction.peak_seconds,
            prediction.roofline_seconds};
  }
  if (note.find("pipeline not counted") != std::string::npos)
    return {prediction.host.without_loader(prediction.step_seconds),
            fed.low_without_loader,
            fed.high_without_loader,
            prediction.bound_by(),
            prediction.peak_seconds,
            prediction.roofline_seconds};
  return {prediction.step_seconds_with_data,
          fed.low,
          fed.high,
          prediction.bound_by_with_data(),
          prediction.peak_seconds,
          prediction.roofline_seconds};
}

// What a step's time is spent on, as a study of end-to-end times divides it: arithmetic, moving data on the
// machine and between machines, starting work and waiting for it, and what the host adds to keep the machine
// fed. Together they are the fed step.
std::optional<StepTime> part_of_step(const Prediction& prediction, const std::string& metric) {
  const machine::Parts& parts = prediction.step;
  const double moving = parts.memory + parts.exchange + parts.collective, whole = prediction.step_seconds,
               up = std::exp(prediction.uncertainty);
  const auto of_machine = [&](double seconds) {
    return StepTime{seconds, seconds / up, seconds * up, prediction.bound_by_with_data()};
  };
  if (metric == "compute_time") return of_machine(parts.compute);
  if (metric == "data_time") return of_machine(moving);
  if (metric == "launch_time") return of_machine(whole - parts.compute - moving);
  if (metric != "host_time") return std::nullopt;
  // The host's own range: of the fed step's ends, beyond those of the machine's.
  const double seconds = prediction.step_seconds_with_data - whole;
  const double a = std::max(0.0, prediction.fed.low - prediction.shortest_step()),
               b = std::max(0.0, prediction.fed.high - prediction.longest_step());
  return StepTime{seconds, std::min({a, b, seconds}), std::max({a, b, seconds}),
                  prediction.bound_by_with_data()};
}

// `amount` a step's time, or of it.
RowPrediction rate_of(double amount, const StepTime& time, std::string reason) {
  return {amount / time.seconds, amount / time.high, amount / time.low,
          std::move(reason),     amount / time.peak, amount / time.roofline};
}
RowPrediction time_of(double factor, const StepTime& time, std::string reason) {
  return {factor * time.seconds, factor * time.low,  factor * time.high,
          std::move(reason),     factor * time.peak, factor * time.roofline};
}

// An epoch whose beginning waits for the compiler.
RowPrediction first_epoch(const RowRun& run, double samples, const StepTime& time, std::string reason) {
  const Machine machine = machine::find_machine(run.machine);
  if (run.epoch_samples <= 0 || machine.style() != machine::Style::bulk_synchronous)
    return refusal("the time to compile is known of IPUs alone, samples of an epoch of ImageNet");
  const machine::Constant& compile = machine.constant("compile_time");
  const double steps = run.epoch_samples / samples;
  return {run.epoch_samples / (compile.value + steps * time.seconds),
          run.epoch_samples / (compile.high + steps * time.high),
          run.epoch_samples / (compile.low + steps * time.low),
          reason + ", after the program is compiled",
          run.epoch_samples / (steps * time.peak),
          run.epoch_samples / (steps * time.roofline)};
}

}  // namespace

double scale_of_unit(const std::string& unit) {
  return unit == "ms" ? 1e3 : unit == "us" ? 1e6 : unit == "%" ? 100 : unit == "TFLOPS" ? 1e-12 : 1;
}

double epoch_samples_of(const std::string& note) {
  constexpr double of_the_table = 19968;  // rows that do not say it are of Chan's table in ANL-23/15
  const std::size_t digits = note.find_first_of("0123456789");
  return digits == std::string::npos ? of_the_table : std::atof(note.c_str() + digits);
}

bool has_application_rows(const PublishedTable& table) {
  return table.has("workload") && table.has("metric") && table.has("value") && table.has("machine");
}

// Graphs are made once for all rows; predictions of models keep no list of their operators.
const graph::Graph& ApplicationRows::graph_at(const RowRun& run, std::int64_t micro_batch) {
  return *graphs_.get(run.graph_key(micro_batch),
                      [&] { return std::make_unique<graph::Graph>(graph_of(run, micro_batch)); });
}

const machine::Answer& ApplicationRows::answer_of(const RowRun& run) {
  return answers_.get(run.key(), [&] {
    machine::Answer found =
        machine::answer(machine_of(run), run.question,
                        [&](std::int64_t batch) -> const graph::Graph& { return graph_at(run, batch); });
    found.prediction.operators.clear();
    if (known_workload(run.workload).empty()) {
      const machine::Precision& precision = found.configuration.settings.precision;
      hold_against_memory(found.prediction, graph_at(run, run.question.stated.micro_batch),
                          size_in_bytes(precision.data));
    }
    return found;
  });
}

namespace {

// "micro-batch 18: set-up poptorch/resnet50 (...); 18 accumulated: ...; ".
std::string assumed_of(const machine::Answer& answer) {
  std::string words = join(machine::words_of(answer.configuration.facts), "; ");
  if (answer.plausible > 1)
    words +=
        fmt::format("{}median of {} plausible configurations", words.empty() ? "" : "; ", answer.plausible);
  return words.empty() ? words : words + "; ";
}

// Of a primitive the fullest moment has no name: all of it is there at once.
std::string fullest_of(const machine::Memory& memory) {
  if (!memory.fullest.empty()) return fmt::format("fullest at '{}'", memory.fullest);
  const bool whole = memory.total() > memory.limit;
  return fmt::format("{} takes {}, and there are {}", whole ? "it" : "the fullest tile",
                     format_bytes(whole ? memory.total() : memory.fullest_tile),
                     format_bytes(whole ? memory.limit : memory.tile_limit));
}

std::string misfit_of(const machine::Answer& answer) {
  return fmt::format("{}does not fit, as predicted: {}{}{}", assumed_of(answer),
                     fullest_of(answer.prediction.stages[0].memory), answer.nearest.empty() ? "" : "; ",
                     answer.nearest);
}

}  // namespace

namespace {

// "ratio_to_a100" -> the machine of that name, or the smaller one of its kind.
std::string other_machine(const std::string& metric) {
  const std::string name = metric.substr(std::string_view("ratio_to_").size());
  return name == "a100" ? "a100-40gb" : name;
}

}  // namespace

RowPrediction ApplicationRows::collective(std::size_t row) {
  const double values = values_of_message(table_.text(row, "workload"));
  if (values <= 0 || table_.text(row, "metric") != "bandwidth_utilization")
    return refusal("this collective is not covered");
  const auto units = static_cast<int>(table_.integer(row, "units", 1));
  const double bytes = values * (table_.text(row, "precision") == "fp16" ? 2 : 4), n = units;
  const double seconds =
      all_reduce_seconds(machine::find_machine(machine_of_row(table_.text(row, "machine"))), bytes, units);
  const double bus = bytes / seconds * 2 * (n - 1) / n;
  // B/s, data sheets: all links of an IPU, both ways; NVLink of a V100, both ways, or of an A100, one way.
  const double links = is_ipu(table_.text(row, "machine")) ? 320e9 : 300e9;
  const double value = 100 * bus / links;
  return {value, value * collective_interval.slower, value * collective_interval.faster,
          "bus bandwidth of the better of ring and tree over the link peak"};
}

// The other side of a ratio: the same configuration on the other machine, or in the other precision. A
// machine that runs kernel by kernel takes its share of the batch at once.
std::optional<RowRun> ApplicationRows::compared(std::size_t row, const RowRun& first) {
  const std::string& metric = table_.text(row, "metric");
  RowRun second = first;
  machine::Stated& stated = second.question.stated;
  const auto driven_by = [&](std::string stack) {
    second.stack = second.question.software = std::move(stack);
  };
  if (metric == "speedup_half_over_single") {
    stated = machine::stated_by(answer_of(first).configuration.settings);
    stated.precision = machine::find_machine(first.machine).computes_in("tf32") ? "tf32" : "f32";
    driven_by(first.stack.empty()
                  ? ""
                  : stack_of(machine::find_machine(second.machine), table_.text(row, "framework"), false,
                             table_.text(row, "source"), table_.text(row, "note")));
    return second;
  }
  if (!metric.starts_with("ratio_to_") || !known_machine(other_machine(metric))) return std::nullopt;
  second.machine = other_machine(metric);
  const Machine machine = machine::find_machine(second.machine);
  driven_by(stack_of(machine, table_.text(row, "framework"), true, "", ""));
  stated = machine::stated_by(answer_of(first).configuration.settings);
  if (machine.style() != machine::Style::kernel_by_kernel) return second;
  // A row that does not say how many it compares with means eight, as its table's others do.
  const std::int64_t units = number_after(table_.text(row, "note"), "against ");
  const std::int64_t global = table_.integer(row, "global_batch", 0);
  stated.replicas = stated.units = units > 0 ? static_cast<int>(units) : 8;
  stated.pipeline.clear();
  stated.stages = 0;
  stated.accumulate = 1;
  stated.recompute.reset();
  stated.precision = "mixed";
  if (global > 0) stated.micro_batch = std::max<std::int64_t>(1, global / stated.replicas);
  return second;
}

namespace {

// Two predictions by one model err alike: the uncertainty of the logarithm of their ratio that is the
// model's. 80 % of the ratios are nearer that were held against measurements (bench/uncertainty.py).
double model_uncertainty_of_ratio(const RowRun& a, const RowRun& b, const machine::Answer& of_a,
                                  const machine::Answer& of_b) {
  const bool same_precision =
      of_a.configuration.settings.precision.name == of_b.configuration.settings.precision.name;
  // The same program on two IPUs: 165 operators that simulators of a GC200 and of a GC2 have timed.
  if (is_ipu(a.machine) && is_ipu(b.machine) && same_precision) return 0.078;
  // A model under a framework's stack on one machine in two precisions: 223 pairs on V100 and A100.
  if (a.machine == b.machine && !a.stack.empty() && !is_ipu(a.machine)) return 0.347;
  return std::hypot(of_a.prediction.model_uncertainty, of_b.prediction.model_uncertainty);
}

// What the constants of both add has causes of its own.
double ratio_uncertainty(const RowRun& a, const RowRun& b, const machine::Answer& of_a,
                         const machine::Answer& of_b) {
  double squares = std::pow(model_uncertainty_of_ratio(a, b, of_a, of_b), 2);
  for (const Prediction* one : {&of_a.prediction, &of_b.prediction})
    squares += std::pow(one->uncertainty, 2) - std::pow(one->model_uncertainty, 2);
  return std::sqrt(squares);
}

}  // namespace

RowPrediction ApplicationRows::ratio_of(std::size_t row, RowRun first) {
  std::optional<RowRun> second = compared(row, first);
  if (!second) return refusal("this ratio is not covered");
  const machine::Answer &of_a = answer_of(first), &of_b = answer_of(*second);
  const Prediction &a = of_a.prediction, &b = of_b.prediction;
  if (!a.fits || !b.fits)
    return refusal(
        fmt::format("on {}: {}", a.fits ? second->machine : first.machine, misfit_of(a.fits ? of_b : of_a)));
  // Applications are fed by their hosts, primitives are not.
  const bool fed = !known_workload(table_.text(row, "workload")).empty();
  const auto rate = [&](const Prediction& p) { return fed ? p.throughput_with_data() : p.throughput(); };
  const auto bound = [&](const Prediction& p) { return fed ? p.bound_by_with_data() : p.bound_by(); };
  const double value = rate(a) / rate(b), up = std::exp(ratio_uncertainty(first, *second, of_a, of_b));
  return {value, value / up, value * up,
          fmt::format("{}bound by {}, the other by {}", assumed_of(of_a), bound(a), bound(b))};
}

RowPrediction ApplicationRows::ratio(std::size_t row) {
  RowRun first = run_of_row(table_, row);
  const std::vector<std::string> kernels = kernels_of_set(first.workload);
  if (kernels.empty()) return ratio_of(row, std::move(first));
  // A set of kernels: the mean of each one's ratio.
  RowPrediction mean{
      .value = 0, .low = 0, .high = 0, .reason = fmt::format("mean of {} kernels", kernels.size())};
  const double share = 1.0 / static_cast<double>(kernels.size());
  for (const std::string& kernel : kernels) {
    first.workload = kernel;
    const RowPrediction one = ratio_of(row, first);
    if (!one.value) return one;
    *mean.value += share * *one.value;
    mean.low += share * one.low;
    mean.high += share * one.high;
  }
  return mean;
}

RowPrediction ApplicationRows::from_run(std::size_t row, const std::string& metric, const std::string& unit) {
  const RowRun run = run_of_row(table_, row);
  const machine::Answer& answer = answer_of(run);
  const Prediction& prediction = answer.prediction;
  if (!prediction.unsupported.empty())
    return refusal("no cost model for " + join(prediction.unsupported, ", "));
  if (!prediction.fits) return {.value = {}, .reason = misfit_of(answer), .memory_ends = true};
  const std::string& note = table_.text(row, "note");
  const bool primitive = known_workload(run.workload).empty();
  if (primitive && (metric == "throughput" || metric == "epoch_time" || metric == "latency_per_sample"))
    return refusal("of a primitive a compute_rate, a compute_utilization or a step_time is predicted");
  const std::optional<StepTime> part = part_of_step(prediction, metric);
  if (part && primitive) return refusal("of a primitive no parts of a step are told: its step_time is");
  const StepTime time = part ? *part : step_time(prediction, primitive, metric, note);
  const std::string reason = fmt::format("{}{}bound by {}", assumed_of(answer),
                                         run.stack.empty() ? "" : run.stack + ", ", time.bound_by);
  const double scale = scale_of_unit(unit);
  const double samples = prediction.samples * (run.packed ? answer.configuration.packed_samples : 1);
  if (metric == "throughput") return rate_of(samples, time, reason);
  if (metric == "throughput_first_epoch") return first_epoch(run, samples, time, reason);
  if (metric == "step_time" || metric.starts_with("time_") || metric == "time" || part)
    return time_of(scale, time, reason);
  if (metric == "latency") return time_of(scale, time, reason);
  if (metric == "latency_per_sample") return time_of(scale / prediction.samples, time, reason);
  if (metric == "compute_utilization") return rate_of(prediction.peak_seconds * scale, time, reason);
  if (metric == "compute_rate") return rate_of(prediction.flops * scale, time, reason);
  if (metric == "epoch_time") {
    const double things = workload::find_workload(run.workload).things_a_sample;
    return time_of(epoch_samples_of(note) / things / prediction.samples, time, reason);
  }
  return refusal("this metric is not covered");
}

RowPrediction ApplicationRows::predict(std::size_t row) {
  const std::string &metric = table_.text(row, "metric"), &workload = table_.text(row, "workload");
  const std::string machine = machine_of_row(table_.text(row, "machine"));
  if (!known_machine(machine)) return refusal(fmt::format("no machine file for {}", machine));
  if (is_language_model(workload)) return language_row(table_, row);
  if (table_.text(row, "mode") == "collective") return collective(row);
  if (metric.starts_with("time_to") || metric == "init_time" || metric == "throughput_with_evaluation")
    return refusal("compilation by itself, evaluation and convergence are not predicted");
  if (known_workload(workload).empty() && kernels_of_set(workload).empty() &&
      !primitive_graph(workload, metric) && !published_primitive(workload))
    return refusal(fmt::format("no workload {}", workload));
  if (metric.starts_with("ratio") || metric.starts_with("speedup")) return ratio(row);
  return from_run(row, metric, table_.text(row, "unit"));
}

}  // namespace superstep::lab
