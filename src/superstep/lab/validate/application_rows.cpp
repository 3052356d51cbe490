#include "superstep/lab/validate/application_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/lab/validate/primitive_graph.h"
#include "superstep/run/model.h"

namespace superstep::lab {

using machine::Machine;
using machine::Prediction;

struct ApplicationRows::Run {
  std::string workload, machine, metric;
  bool training = true, called_directly = false;
  machine::PredictSettings settings;
  std::string assumed;

  std::string key() const {
    std::string pipeline;
    for (int share : settings.pipeline) pipeline += fmt::format(" {}", share);
    return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", workload, machine, training, settings.precision.name,
                       settings.micro_batch, settings.accumulate, settings.replicas, pipeline,
                       workload.starts_with("conv_") ? metric : "");
  }
};

namespace {

constexpr std::int64_t ipu_micro_batch = 16;  // assumed where a row does not say

std::string machine_of_row(const std::string& name) { return name.starts_with("v100") ? "v100" : name; }

bool is_ipu(const std::string& machine) { return machine == "gc2" || machine == "gc200" || machine == "bow"; }

// What "fp32" and "mixed" mean differs: frameworks on machines with tf32 use it for convolutions by default;
// on an IPU "mixed" is 16-bit throughout with f32 partial sums.
std::string precision_of_row(const std::string& name, const std::string& machine) {
  if (name == "amp" || (name == "mixed" && !is_ipu(machine))) return "mixed";
  if (name == "tf32" || (name == "fp32" && machine.starts_with("a100"))) return "tf32";
  if (name == "fp32") return "f32";
  return name == "16.16" ? "16.16" : name == "bf16" ? "bf16" : "f16";
}

bool known_machine(const std::string& id) {
  return std::any_of(machine::machines().begin(), machine::machines().end(),
                     [&](const Machine& machine) { return machine.id() == id; });
}

bool known_workload(const std::string& name) {
  return std::any_of(workload::workloads().begin(), workload::workloads().end(),
                     [&](const workload::Workload& workload) { return workload.name == name; });
}

// Of a model, where the tables ran another form than is the default here.
std::vector<std::string> published_form(const std::string& workload) {
  // One component, and nothing comes back (ANL-23/15).
  if (workload == "pca-compress-128") return {"components=1", "returns=no"};
  // Ten blocks that are largest in the eighth (Le 2024): the smaller form here is for processors.
  if (workload == "conductivity") return {"size=heavy"};
  return {};
}

graph::Graph graph_of(const std::string& workload, bool training, std::int64_t batch,
                      const std::string& metric) {
  if (auto primitive = primitive_graph(workload, metric)) return std::move(*primitive);
  const run::Model model({.workload = workload, .model_options = published_form(workload)});
  return training ? model.training_step()(batch) : model.inference()(batch);
}

// What the vendor's public training set-ups of a model are (graphcore/examples, MIT; MLPerf 1.0 logs), where
// a row does not say: published tables ran these programs. Samples cross the host's link as bytes, and
// partial sums are f16 whatever a table calls that.
struct PublicSetUp {
  std::string_view workload, framework;
  std::int64_t micro_batch = 0;
  std::int64_t update_samples = 0;  // of an update, over all replicas
};
// Micro-batch, and samples of an update, as the vendor's public examples set them (docs/machines.md).
constexpr PublicSetUp public_set_ups[] = {{"resnet50", "pytorch", 18, 16416},
                                          {"resnet50", "tensorflow", 20, 1920},
                                          {"efficientnet-b0", "pytorch", 20, 800}};

const PublicSetUp* public_set_up(const std::string& workload, const std::string& framework,
                                 const std::string& machine) {
  if (!is_ipu(machine)) return nullptr;
  for (const PublicSetUp& set_up : public_set_ups)
    if (set_up.workload == workload && set_up.framework == framework) return &set_up;
  return nullptr;
}

// A pipeline of two stages in a row without its split is cut where both have as many layers.
std::vector<int> even_stages(std::int64_t stages) {
  return stages > 1 ? std::vector<int>(static_cast<std::size_t>(stages), 1) : std::vector<int>{};
}

// "[6, 4]" in a note.
std::vector<int> stated_split(const std::string& note) {
  const std::size_t open = note.find('['), close = note.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  std::vector<int> shares;
  for (const std::string& part : split(note.substr(open + 1, close - open - 1), ',')) {
    const int share = std::atoi(part.c_str());
    if (share < 1) return {};
    shares.push_back(share);
  }
  return shares;
}

RowPrediction refusal(std::string reason) { return {.value = std::nullopt, .reason = std::move(reason)}; }

// Seconds of a step as a row counts them.
struct StepTime {
  double seconds = 0, low = 0, high = 0;
  std::string bound_by;
};

// Primitives are timed on the machine; a model is fed by its host, unless a note says "pipeline not counted".
StepTime step_time(const Prediction& prediction, const std::string& metric, const std::string& note) {
  const machine::FedInterval& fed = prediction.fed;
  if (metric.starts_with("time") || metric == "compute_utilization" || metric == "compute_rate") {
    const double up = std::exp(prediction.uncertainty), seconds = prediction.step_seconds;
    return {seconds, seconds / up, seconds * up, prediction.bound_by()};
  }
  if (note.find("pipeline not counted") != std::string::npos)
    return {prediction.host.without_loader(prediction.step_seconds), fed.low_without_loader,
            fed.high_without_loader, prediction.bound_by()};
  return {prediction.step_seconds_with_data, fed.low, fed.high, prediction.bound_by_with_data()};
}

// `amount` a step's time, or of it.
RowPrediction rate_of(double amount, const StepTime& time, std::string reason) {
  return {amount / time.seconds, amount / time.high, amount / time.low, std::move(reason)};
}
RowPrediction time_of(double factor, const StepTime& time, std::string reason) {
  return {factor * time.seconds, factor * time.low, factor * time.high, std::move(reason)};
}

}  // namespace

bool has_application_rows(const PublishedTable& table) {
  return table.has("workload") && table.has("metric") && table.has("value") && table.has("machine");
}

ApplicationRows::Run ApplicationRows::run_of(std::size_t row) const {
  const auto count = [&](const char* column) { return table_.integer(row, column, 0); };
  Run run{.workload = table_.text(row, "workload"),
          .machine = machine_of_row(table_.text(row, "machine")),
          .metric = table_.text(row, "metric"),
          .training = table_.text(row, "mode") == "train"};
  const std::string& framework = table_.text(row, "framework");
  run.called_directly = framework == "cublas" || framework == "cudnn";
  run.settings.precision =
      machine::precision_from_name(precision_of_row(table_.text(row, "precision"), run.machine));
  const PublicSetUp* set_up = public_set_up(run.workload, framework, run.machine);
  if (set_up && table_.text(row, "precision") != "fp32") {
    run.settings.precision = machine::precision_from_name("16.16");
    run.settings.input_bytes = 1;
  }
  if (run.workload == "pca-compress-128") run.settings.input_bytes = 2;  // the table's 32 KB of a frame
  const std::int64_t units = std::max<std::int64_t>(1, count("units"));
  const std::int64_t stages = std::max<std::int64_t>(1, count("pipeline_stages"));
  // More replicas than units share one (a wafer); the model is of one unit.
  run.settings.replicas = static_cast<int>(std::clamp<std::int64_t>(units / stages, 1, units));
  run.settings.pipeline = stated_split(table_.text(row, "note"));
  if (run.settings.pipeline.size() != static_cast<std::size_t>(stages))
    run.settings.pipeline = even_stages(stages);
  run.settings.accumulate = static_cast<int>(std::max<std::int64_t>(1, count("grad_accum")));
  std::int64_t micro = count("micro_batch");
  const std::int64_t global = count("global_batch");
  const bool free = is_ipu(run.machine) && count("grad_accum") == 0;  // how a step is cut is not said
  if (micro == 0) {
    if (set_up)
      micro = set_up->micro_batch;
    else if (global > 0)
      micro = std::max<std::int64_t>(1, global / run.settings.replicas / run.settings.accumulate);
    else if (is_ipu(run.machine) || !known_workload(run.workload))
      micro = is_ipu(run.machine) ? ipu_micro_batch : 1;
    else
      micro = workload::find_workload(run.workload).training.batch;
    if (free && !set_up) micro = std::min(micro, ipu_micro_batch);
    if (set_up || global == 0 || free)
      run.assumed = fmt::format("micro-batch {} {}; ", micro, set_up ? "as the public set-up" : "assumed");
  }
  const std::int64_t samples = global > 0 ? global : set_up ? set_up->update_samples : 0;
  if (free && samples > 0)
    run.settings.accumulate =
        static_cast<int>(std::max<std::int64_t>(1, samples / micro / run.settings.replicas));
  run.settings.micro_batch = micro;
  return run;
}

const Prediction& ApplicationRows::prediction_of(const Run& run) {
  const std::string key = run.key();
  if (const auto found = predictions_.find(key); found != predictions_.end()) return found->second;
  Machine machine = machine::find_machine(run.machine);
  // A library called in a loop from C has the least launch overhead of the range.
  if (run.called_directly && machine.style() == machine::Style::kernel_by_kernel)
    machine = machine.with("launch_overhead", machine.constant("launch_overhead").low);
  const graph::Graph graph = graph_of(run.workload, run.training, run.settings.micro_batch, run.metric);
  machine::PredictSettings settings = run.settings;
  Prediction prediction = machine::predict(machine, graph, settings);
  if (!prediction.fits && run.training) {
    settings.recompute = true;
    prediction = machine::predict(machine, graph, settings);
  }
  return predictions_.emplace(key, std::move(prediction)).first->second;
}

RowPrediction ApplicationRows::collective(std::size_t row) {
  const std::string& workload = table_.text(row, "workload");
  if (!workload.starts_with("allreduce-64.5M") || table_.text(row, "metric") != "bandwidth_utilization")
    return refusal("this collective is not covered");
  const auto model = machine::cost_model(machine::find_machine(machine_of_row(table_.text(row, "machine"))));
  const auto units = static_cast<int>(table_.integer(row, "units", 1));
  // The message that the row's name says, in f32.
  constexpr double values = 64.5e6;
  const double bytes = values * 4, n = units;
  const double seconds = model->all_reduce_seconds(bytes, units);
  const double bus = bytes / seconds * 2 * (n - 1) / n;
  // B/s, data sheets: all links of an IPU, both ways; NVLink of a V100, both ways, or of an A100, one way.
  const double links = is_ipu(table_.text(row, "machine")) ? 320e9 : 300e9;
  const double value = 100 * bus / links;
  // The interval has no source: chosen.
  return {value, value * 0.6, value * 1.6, "bus bandwidth of a ring over the link peak"};
}

// Ratios: the same configuration on the other machine, or in the other precision.
RowPrediction ApplicationRows::ratio(std::size_t row) {
  const std::string& metric = table_.text(row, "metric");
  Run first = run_of(row), second = first;
  if (metric == "ratio_to_a100") {
    second.machine = "a100-40gb";
    second.settings.replicas = 8;
    second.settings.precision = machine::precision_from_name("mixed");
    const std::int64_t global = table_.integer(row, "global_batch", 0);
    second.settings.micro_batch = std::max<std::int64_t>(1, global / 8);
  } else if (metric == "ratio_to_gc200") {
    second.machine = "gc200";
  } else if (metric == "speedup_half_over_single") {
    second.settings.precision = machine::precision_from_name(is_ipu(first.machine) ? "f32" : "tf32");
  } else {
    return refusal("this ratio is not covered");
  }
  const Prediction a = prediction_of(first);
  const Prediction& b = prediction_of(second);
  if (!a.fits || !b.fits) return refusal("does not fit, as predicted");
  const double value = a.throughput() / b.throughput();
  const double up = std::exp(std::hypot(a.uncertainty, b.uncertainty));
  return {value, value / up, value * up, first.assumed + "bound by " + a.bound_by()};
}

RowPrediction ApplicationRows::from_run(std::size_t row, const std::string& metric, const std::string& unit) {
  const Run run = run_of(row);
  const Prediction& prediction = prediction_of(run);
  if (!prediction.unsupported.empty())
    return refusal("no cost model for " + join(prediction.unsupported, ", "));
  if (!prediction.fits)
    return refusal(fmt::format("{}does not fit, as predicted: fullest at '{}'", run.assumed,
                               prediction.stages[0].memory.fullest));
  const std::string& note = table_.text(row, "note");
  const StepTime time = step_time(prediction, metric, note);
  const std::string reason = fmt::format("{}bound by {}", run.assumed, time.bound_by);
  // From SI to the row's own unit.
  const double scale = unit == "ms"       ? 1e3
                       : unit == "us"     ? 1e6
                       : unit == "%"      ? 100
                       : unit == "TFLOPS" ? 1e-12
                                          : 1;
  if (metric == "throughput") return rate_of(prediction.samples, time, reason);
  if (metric == "step_time" || metric.starts_with("time_") || metric == "time")
    return time_of(scale, time, reason);
  if (metric == "latency_per_sample") return time_of(scale / prediction.samples, time, reason);
  if (metric == "compute_utilization") return rate_of(prediction.peak_seconds * scale, time, reason);
  if (metric == "compute_rate") return rate_of(prediction.flops * scale, time, reason);
  if (metric == "epoch_time") {
    // "training part of an epoch: 19968 of 20608 samples"
    const std::size_t digits = note.find_first_of("0123456789");
    const double samples = digits == std::string::npos ? 19968 : std::atof(note.c_str() + digits);
    const double things =
        known_workload(run.workload) ? workload::find_workload(run.workload).things_a_sample : 1;
    return time_of(samples / things / prediction.samples, time, reason);
  }
  return refusal("this metric is not covered");
}

RowPrediction ApplicationRows::predict(std::size_t row) {
  const std::string &metric = table_.text(row, "metric"), &workload = table_.text(row, "workload");
  const std::string machine = machine_of_row(table_.text(row, "machine"));
  if (!known_machine(machine)) return refusal(fmt::format("no machine file for {}", machine));
  if (table_.text(row, "mode") == "collective") return collective(row);
  if (metric.starts_with("time_to") || metric == "init_time" ||
      metric.find("first_epoch") != std::string::npos || metric == "throughput_with_evaluation")
    return refusal("compilation, evaluation and convergence are not predicted");
  if (!known_workload(workload) && !primitive_graph(workload, metric))
    return refusal(fmt::format("no workload {}", workload));
  if (metric.starts_with("ratio") || metric.starts_with("speedup")) return ratio(row);
  return from_run(row, metric, table_.text(row, "unit"));
}

}  // namespace superstep::lab
