#include "superstep/lab/validate/row_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include "superstep/base/text.h"
#include "superstep/lab/validate/primitive_graph.h"
#include "superstep/run/model.h"

namespace superstep::lab {

using machine::Machine;
using machine::Style;

namespace {

constexpr std::int64_t ipu_micro_batch = 16;  // assumed where a row does not say

// What "fp32" and "mixed" mean differs: frameworks on machines with tf32 use it for convolutions by default;
// on an IPU "mixed" is 16-bit throughout with f32 partial sums.
std::string precision_of_row(const std::string& name, const std::string& machine) {
  if (name == "amp" || (name == "mixed" && !is_ipu(machine))) return "mixed";
  if (name == "tf32" || (name == "fp32" && machine.starts_with("a100"))) return "tf32";
  if (name == "fp32") return "f32";
  return name == "16.16" ? "16.16" : name == "bf16" ? "bf16" : "f16";
}

// Rows whose model is a form of a workload. BERT's sizes: J. Devlin et al., arXiv 1810.04805.
struct PublishedForm {
  std::string_view name, workload;
  std::vector<std::string> options;
};
const std::vector<PublishedForm>& published_forms() {
  static const std::vector<std::string> large{"layers=24", "width=1024", "heads=16"},
      base{"layers=12", "width=768", "heads=12"};
  static const std::vector<PublishedForm> forms{
      {"bert-large-pretrain", "bert-large", {}},
      {"bert-large-squad", "bert-base-squad", large},
      {"bert-base", "bert-large", base},
      // Windows over groups of 16 channels (D. Masters et al., arXiv 2106.03640).
      {"efficientnet-b4-g16", "efficientnet-b4", {"group-width=16", "expansion=4", "norm=group"}},
      // One component, and nothing comes back (ANL-23/15).
      {"pca-compress-128", "pca-compress-128", {"components=1", "returns=no"}},
      // Ten blocks that are largest in the eighth (Le 2024): the smaller form here is for processors.
      {"conductivity", "conductivity", {"size=heavy"}}};
  return forms;
}

const PublishedForm* published_form(const std::string& name) {
  for (const PublishedForm& form : published_forms())
    if (form.name == name) return &form;
  return nullptr;
}

bool in_zoo(const std::string& name) {
  return std::any_of(workload::workloads().begin(), workload::workloads().end(),
                     [&](const workload::Workload& workload) { return workload.name == name; });
}

// What the vendor's public training set-ups of a model are (graphcore/examples, MIT; MLPerf 1.0 logs), where
// a row does not say: published tables ran these programs. Samples cross the host's link as bytes, and
// partial sums are f16 whatever a table calls that.
struct PublicSetUp {
  std::string_view row_workload, framework;
  std::int64_t micro_batch = 0;
  std::int64_t update_samples = 0;  // of an update, over all replicas
  std::span<const int> pipeline{};  // layers of each stage
  bool recompute = false;
};
constexpr int g16_stages[] = {10, 22};  // blocks before and from the fourth stage of the network on
// Micro-batch, and samples of an update, as the vendor's public examples set them (docs/machines.md).
constexpr PublicSetUp public_set_ups[] = {{"resnet50", "pytorch", 18, 16416},
                                          {"resnet50", "tensorflow", 20, 1920},
                                          {"efficientnet-b0", "pytorch", 20, 800},
                                          {"efficientnet-b4-g16", "tensorflow", 3, 6144, g16_stages, true}};

const PublicSetUp* public_set_up(const std::string& row_workload, const std::string& framework,
                                 const std::string& machine) {
  if (!is_ipu(machine)) return nullptr;
  for (const PublicSetUp& set_up : public_set_ups)
    if (set_up.row_workload == row_workload && set_up.framework == framework) return &set_up;
  return nullptr;
}

// Where the published samples lie. Pictures of ImageNet are read by as many processes as it takes (the
// vendors' examples have 8 to 14 a chip); the conductivity's are 1,520 pictures in files, read by whatever
// the framework does by itself.
struct PublishedData {
  std::string_view workload;
  bool in_files = false;
  int loaders = 1;
  bool are_graphs = false;
  double epoch_samples = 0;
};
constexpr double imagenet_samples = 1281167;  // of its training part
constexpr PublishedData published_data[] = {{"resnet50", false, 8, false, imagenet_samples},
                                            {"efficientnet-b0", false, 8, false, imagenet_samples},
                                            {"efficientnet-b4", false, 8, false, imagenet_samples},
                                            {"mobilenet-v3-small", false, 8},
                                            {"mobilenet-v3-large", false, 8},
                                            {"conductivity", true, 1},
                                            {"polymer-gcn", false, 1, true},
                                            {"polymer-mpnn", false, 1, true},
                                            {"gin", false, 1, true},
                                            {"schnet", false, 1, true},
                                            {"yieldgnn", false, 1, true}};

void set_data(RowRun& run) {
  for (const PublishedData& data : published_data) {
    if (data.workload != run.workload) continue;
    run.settings.samples_in_files = data.in_files;
    run.settings.loaders = data.loaders;
    run.settings.samples_are_graphs = data.are_graphs;
    run.epoch_samples = data.epoch_samples;
  }
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

// Units, replicas and stages.
void set_units(const PublishedTable& table, std::size_t row, const PublicSetUp* set_up, RowRun& run) {
  const auto count = [&](const char* column) { return table.integer(row, column, 0); };
  const std::int64_t units = std::max<std::int64_t>(1, count("units"));
  std::int64_t stages = std::max<std::int64_t>(1, count("pipeline_stages"));
  const bool as_set_up = set_up && !set_up->pipeline.empty() && count("pipeline_stages") == 0;
  if (as_set_up) stages = static_cast<std::int64_t>(set_up->pipeline.size());
  run.settings.recompute = set_up && set_up->recompute;
  // More replicas than units share one (a wafer); the model is of one unit.
  run.settings.replicas = static_cast<int>(std::clamp<std::int64_t>(units / stages, 1, units));
  run.settings.pipeline = as_set_up ? std::vector<int>(set_up->pipeline.begin(), set_up->pipeline.end())
                                    : stated_split(table.text(row, "note"));
  if (run.settings.pipeline.size() != static_cast<std::size_t>(stages))
    run.settings.pipeline = even_stages(stages);
  run.settings.accumulate = static_cast<int>(std::max<std::int64_t>(1, count("grad_accum")));
}

// Of models that fill a GPU tables report the best of several batches, which is a large one: so many samples,
// or the most that fit.
constexpr std::int64_t best_batch = 256;

bool takes_best_batch(const RowRun& run) {
  const bool fills =
      run.settings.loaders > 1 || run.workload == "distilbert" || run.workload.starts_with("bert-");
  return fills && run.training && !run.stack.empty() &&
         machine::find_machine(run.machine).style() == Style::kernel_by_kernel;
}

// A number that stands before these words; 0: there is none.
std::int64_t number_before(const std::string& note, std::string_view words) {
  std::size_t begin = note.find(words);
  if (begin == std::string::npos) return 0;
  while (begin > 0 && note[begin - 1] >= '0' && note[begin - 1] <= '9') --begin;
  return std::atoll(note.c_str() + begin);
}

// Samples of a step, as items of the batch axis, where a note has the steps of an epoch and the samples, of
// which one of five folds is kept aside; 0: it does not say.
std::int64_t batch_of_epoch(const std::string& note, double samples_per_item) {
  const std::int64_t steps = number_before(note, " steps an epoch"), all = number_before(note, " polymers");
  if (steps == 0 || all == 0) return 0;
  const double trained = static_cast<double>(all) * (note.find("five folds") == std::string::npos ? 1 : 0.8);
  return std::max<std::int64_t>(1, std::llround(trained / static_cast<double>(steps) / samples_per_item));
}

// Micro-batch and accumulation.
void set_batches(const PublishedTable& table, std::size_t row, const PublicSetUp* set_up, RowRun& run) {
  const auto count = [&](const char* column) { return table.integer(row, column, 0); };
  std::int64_t micro = count("micro_batch");
  const std::int64_t global = count("global_batch");
  const bool free = is_ipu(run.machine) && count("grad_accum") == 0;  // how a step is cut is not said
  const std::string& note = table.text(row, "note");
  if (micro == 0) micro = number_after(note, "batch per GPU ");
  if (micro == 0) micro = batch_of_epoch(note, run.settings.samples_per_item);
  if (micro > 0 && run.machine == "v100" && run.settings.precision.name == "f32")
    if (const std::int64_t wide = number_after(note, "V100 FP32: "); wide > 0) micro = wide;
  if (micro == 0) {
    if (set_up)
      micro = set_up->micro_batch;
    else if (global > 0)
      micro = std::max<std::int64_t>(1, global / run.settings.replicas / run.settings.accumulate);
    else if (takes_best_batch(run))
      micro = best_batch;
    else if (is_ipu(run.machine) || !in_zoo(run.workload))
      micro = is_ipu(run.machine) ? ipu_micro_batch : 1;
    else
      micro = workload::find_workload(run.workload).training.batch;
    if (free && !set_up) micro = std::min(micro, ipu_micro_batch);
    if (set_up || global == 0 || free)
      run.assumed = fmt::format("micro-batch {} {}; ", micro, set_up ? "as the public set-up" : "assumed");
    run.batch_assumed = true;
  }
  const std::int64_t samples = global > 0 ? global : set_up ? set_up->update_samples : 0;
  if (free && samples > 0)
    run.settings.accumulate =
        static_cast<int>(std::max<std::int64_t>(1, samples / micro / run.settings.replicas));
  run.settings.micro_batch = micro;
}

}  // namespace

std::int64_t number_after(const std::string& note, std::string_view words) {
  const std::size_t at = note.find(words);
  return at == std::string::npos ? 0 : std::atoll(note.c_str() + at + words.size());
}

bool is_ipu(const std::string& machine) { return machine == "gc2" || machine == "gc200" || machine == "bow"; }

std::string machine_of_row(const std::string& name) { return name.starts_with("v100") ? "v100" : name; }

std::string known_workload(const std::string& row_workload) {
  if (const PublishedForm* form = published_form(row_workload)) return std::string(form->workload);
  return in_zoo(row_workload) ? row_workload : "";
}

std::string RowRun::graph_key() const {
  return fmt::format("{}|{}|{}|{}|{}", workload, join(options, " "), training, settings.micro_batch,
                     workload.starts_with("conv_") ? metric : "");
}

std::string RowRun::key() const {
  std::string pipeline;
  for (int share : settings.pipeline) pipeline += fmt::format(" {}", share);
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", graph_key(), machine, stack, settings.precision.name,
                     settings.accumulate, settings.replicas, pipeline);
}

std::string stack_of(const Machine& machine, const std::string& framework, bool half,
                     const std::string& source, const std::string& note) {
  std::string stack;
  switch (machine.style()) {
    case Style::kernel_by_kernel:
      // NVIDIA's examples compile TensorFlow's graphs unless they say otherwise.
      if (framework == "pytorch") stack = half ? "pytorch-amp" : "pytorch-eager";
      if (framework == "tensorflow")
        stack = note.find("XLA on") != std::string::npos ||
                        (source.starts_with("NVIDIA") && note.find("XLA off") == std::string::npos)
                    ? "tensorflow-xla"
                    : "tensorflow";
      if (framework == "mxnet") stack = "mxnet";
      break;
    case Style::bulk_synchronous:
      stack = framework == "pytorch" ? "poptorch" : framework == "tensorflow" ? "tensorflow" : "poplar";
      break;
    case Style::spatial_pipeline: stack = machine.id() == "cs2" ? "cstorch" : "sambaflow"; break;
    case Style::static_stream: stack = framework == "groqapi" ? "groqapi" : "groqflow"; break;
  }
  return machine.has_stack(stack) ? stack : "";
}

RowRun run_of_row(const PublishedTable& table, std::size_t row) {
  const std::string &name = table.text(row, "workload"), &framework = table.text(row, "framework"),
                    &precision = table.text(row, "precision"), &note = table.text(row, "note");
  RowRun run{.workload = name,
             .machine = machine_of_row(table.text(row, "machine")),
             .metric = table.text(row, "metric"),
             .training = table.text(row, "mode") == "train" || table.text(row, "mode") == "finetune"};
  if (const PublishedForm* form = published_form(name)) {
    run.workload = form->workload;
    run.options = form->options;
  }
  if (const std::int64_t length = number_after(note, "sequence length "); length > 0)
    run.options.push_back(fmt::format("length={}", length));
  // A primitive's own time is a profiler's, not its framework's.
  run.called_directly = framework == "cublas" || framework == "cudnn" || known_workload(name).empty();
  run.settings.precision = machine::precision_from_name(precision_of_row(precision, run.machine));
  if (!run.called_directly)
    run.stack = stack_of(machine::find_machine(run.machine), framework,
                         size_in_bytes(run.settings.precision.data) < 4, table.text(row, "source"), note);
  const PublicSetUp* set_up = public_set_up(name, framework, run.machine);
  if (set_up && precision != "fp32") {
    run.settings.precision = machine::precision_from_name("16.16");
    run.settings.input_bytes = 1;
  }
  if (in_zoo(run.workload))
    run.settings.samples_per_item = workload::find_workload(run.workload).things_a_sample;
  if (run.workload == "pca-compress-128") run.settings.input_bytes = 2;  // the table's 32 KB of a frame
  set_data(run);
  set_units(table, row, set_up, run);
  set_batches(table, row, set_up, run);
  return run;
}

Machine machine_of(const RowRun& run) {
  Machine machine = machine::find_machine(run.machine);
  if (!run.stack.empty()) return machine.driven_by(run.stack);
  // A library called in a loop from C has the least launch overhead of the range.
  if (run.called_directly && machine.style() == Style::kernel_by_kernel)
    machine = machine.with("launch_overhead", machine.constant("launch_overhead").low);
  return machine;
}

graph::Graph graph_of(const RowRun& run) {
  if (auto primitive = primitive_graph(run.workload, run.metric)) return std::move(*primitive);
  const run::Model model({.workload = run.workload, .model_options = run.options});
  const std::int64_t batch = run.settings.micro_batch;
  return run.training ? model.training_step()(batch) : model.inference()(batch);
}

}  // namespace superstep::lab
