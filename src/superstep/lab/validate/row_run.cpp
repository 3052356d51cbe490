#include "superstep/lab/validate/row_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "superstep/base/text.h"
#include "superstep/lab/validate/primitive_graph.h"
#include "superstep/machine/configuration/set_ups.h"
#include "superstep/run/model.h"

namespace superstep::lab {

using machine::Machine;
using machine::Style;

namespace {

// What "fp32" and "mixed" mean differs: frameworks on machines with tf32 use it for convolutions by default.
std::string precision_of_row(const std::string& name, const std::string& machine) {
  if (name == "amp" || (name == "mixed" && !is_ipu(machine))) return "mixed";
  if (name == "tf32" || (name == "fp32" && machine.starts_with("a100"))) return "tf32";
  if (name == "fp32") return "f32";
  return name == "16.16" ? "16.16" : name == "bf16" ? "bf16" : "f16";
}

// Of IPUs these words leave open what partial sums are: a set-up that says it is more exact.
bool is_vague(const std::string& name, const std::string& machine) {
  return is_ipu(machine) && name != "fp32" && name != "16.16";
}

bool in_zoo(const std::string& name) {
  return std::any_of(workload::workloads().begin(), workload::workloads().end(),
                     [&](const workload::Workload& workload) { return workload.name == name; });
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

// A table's V100 took another batch in 32 bits than its column says.
std::int64_t stated_micro_batch(const PublishedTable& table, std::size_t row, const RowRun& run) {
  const std::string& note = table.text(row, "note");
  std::int64_t micro = table.integer(row, "micro_batch", 0);
  if (micro == 0) micro = number_after(note, "batch per GPU ");
  if (micro == 0) micro = batch_of_epoch(note, run.question.samples_per_item);
  if (micro > 0 && run.machine == "v100" && run.question.stated.precision == "f32")
    if (const std::int64_t wide = number_after(note, "V100 FP32: "); wide > 0) micro = wide;
  return micro;
}

void set_stated(const PublishedTable& table, std::size_t row, RowRun& run) {
  const auto count = [&](const char* column) { return table.integer(row, column, 0); };
  const std::string& note = table.text(row, "note");
  machine::Stated& stated = run.question.stated;
  stated.units = static_cast<int>(std::max<std::int64_t>(1, count("units")));
  stated.replicas = static_cast<int>(count("replicas"));
  stated.stages = static_cast<int>(count("pipeline_stages"));
  stated.pipeline = stated_split(note);
  if (stated.stages > 0 && stated.pipeline.size() != static_cast<std::size_t>(stated.stages))
    stated.pipeline.clear();
  stated.accumulate = static_cast<int>(count("grad_accum"));
  stated.global_batch = count("global_batch");
  stated.micro_batch = stated_micro_batch(table, row, run);
  stated.loaders = static_cast<int>(count("loaders"));
  run.question.sample_seconds = 1e-6 * static_cast<double>(count("sample_us"));
  if (stated.loaders == 0) stated.loaders = static_cast<int>(number_before(note, " input workers"));
}

// What rows of the same table say of the same program on the same machine.
bool are_siblings(const PublishedTable& table, std::size_t a, std::size_t b) {
  static constexpr std::array same{"source",  "place",     "workload", "mode",
                                   "machine", "framework", "precision"};
  return std::ranges::all_of(
      same, [&](const char* column) { return table.text(a, column) == table.text(b, column); });
}

// Fills a gap with what all siblings agree on that say it. They must not contradict this row elsewhere: one
// with another micro-batch is another set-up.
void ask_siblings(const PublishedTable& table, std::size_t row, RowRun& run) {
  machine::Stated& stated = run.question.stated;
  struct Gap {
    const char* column;
    bool open;
    const char* words;
  };
  const Gap gaps[] = {{"micro_batch", stated.micro_batch == 0, "micro-batch {}"},
                      {"grad_accum", stated.accumulate == 0 && stated.global_batch == 0, "{} accumulated"}};
  for (const Gap& gap : gaps) {
    if (!gap.open) continue;
    std::set<std::int64_t> said;
    std::size_t who = row;
    for (std::size_t other = 0; other < table.rows(); ++other) {
      if (other == row || !are_siblings(table, row, other)) continue;
      const std::int64_t micro = table.integer(other, "micro_batch", 0);
      if (stated.micro_batch > 0 && micro > 0 && micro != stated.micro_batch) continue;
      const std::int64_t value = table.integer(other, gap.column, 0);
      if (value > 0) said.insert(value), who = other;
    }
    if (said.size() != 1) continue;
    const std::int64_t value = *said.begin();
    // A row that states its batch has no micro-batch which that is no multiple of.
    const std::int64_t together = value * std::max(1, stated.units / std::max(1, stated.stages));
    if (gap.column == gaps[0].column && stated.global_batch > 0 && stated.global_batch % together != 0)
      continue;
    if (gap.column == gaps[0].column)
      stated.micro_batch = value;
    else
      stated.accumulate = static_cast<int>(value);
    run.question.facts.push_back(
        {fmt::format(fmt::runtime(gap.words), value), "row " + table.text(who, "id") + " of the same table"});
  }
}

}  // namespace

std::int64_t number_after(const std::string& note, std::string_view words) {
  const std::size_t at = note.find(words);
  return at == std::string::npos ? 0 : std::atoll(note.c_str() + at + words.size());
}

bool is_ipu(const std::string& machine) { return machine == "gc2" || machine == "gc200" || machine == "bow"; }

std::string machine_of_row(const std::string& name) { return name.starts_with("v100") ? "v100" : name; }

std::string known_workload(const std::string& row_workload) {
  if (const machine::Form* form = machine::form_of(row_workload)) return form->workload;
  return in_zoo(row_workload) ? row_workload : "";
}

namespace {

std::size_t bytes_of_elements(const RowRun& run) {
  return size_in_bytes(machine::precision_from_name(run.question.usual_precision).data);
}

}  // namespace

std::string RowRun::graph_key(std::int64_t micro_batch) const {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", workload, join(options, " "), training, name_of(passes),
                     micro_batch, workload.starts_with("conv_") ? metric : "",
                     called_directly ? bytes_of_elements(*this) : 0);
}

std::string RowRun::key() const {
  const machine::Stated& s = question.stated;
  const int recompute = s.recompute ? 1 + static_cast<int>(*s.recompute) : 0;
  std::string key =
      join(std::vector{graph_key(s.micro_batch), machine, stack, s.precision, question.usual_precision}, "|");
  for (const std::int64_t number :
       {s.global_batch, std::int64_t{s.units}, std::int64_t{s.replicas}, std::int64_t{s.accumulate},
        std::int64_t{s.stages}, std::int64_t{recompute}, std::int64_t{s.loaders},
        std::int64_t{s.device_iterations}, std::int64_t{s.input_bytes}, std::int64_t{packed}})
    key += fmt::format("|{}", number);
  return key + fmt::format("|{}|{}|{}", fmt::join(s.pipeline, ","), fmt::join(s.chips, ","),
                           question.sample_seconds);
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

namespace {

bool trains_in(const std::string& mode) {
  return mode == "train" || mode == "finetune" || mode == name_of(Passes::gradients);
}

}  // namespace

RowRun run_of_row(const PublishedTable& table, std::size_t row) {
  const std::string &name = table.text(row, "workload"), &framework = table.text(row, "framework"),
                    &precision = table.text(row, "precision"), &note = table.text(row, "note");
  RowRun run{.workload = name,
             .machine = machine_of_row(table.text(row, "machine")),
             .metric = table.text(row, "metric"),
             .training = trains_in(table.text(row, "mode")),
             .packed = note.find("packed to one") != std::string::npos};
  if (const machine::Form* form = machine::form_of(name)) {
    run.workload = form->workload;
    run.options = form->options;
  }
  run.passes = !run.training                                           ? Passes::forward
               : table.text(row, "mode") == name_of(Passes::gradients) ? Passes::gradients
                                                                       : Passes::both;
  machine::Question& question = run.question;
  question.workload = name;
  question.training = run.training;
  question.packed = run.packed;
  question.length = number_after(note, "sequence length ");
  if (question.length > 0) run.options.push_back(fmt::format("length={}", question.length));
  // A primitive's own time is a profiler's, not its framework's.
  run.called_directly = framework == "cublas" || framework == "cudnn" || known_workload(name).empty();
  question.usual_precision = precision_of_row(precision, run.machine);
  if (!is_vague(precision, run.machine)) question.stated.precision = question.usual_precision;
  if (!run.called_directly)
    run.stack = stack_of(machine::find_machine(run.machine), framework,
                         size_in_bytes(machine::precision_from_name(question.usual_precision).data) < 4,
                         table.text(row, "source"), note);
  question.software = run.stack;
  if (in_zoo(run.workload)) {
    const workload::Workload& zoo = workload::find_workload(run.workload);
    question.data_of = run.workload;
    question.samples_per_item = zoo.things_a_sample;
    if (run.training) question.recipe_batch = zoo.training.batch;
    if (const machine::DataFacts* data = machine::data_facts_of(run.workload))
      run.epoch_samples = data->epoch_samples;
  }
  set_stated(table, row, run);
  if (!run.called_directly) ask_siblings(table, row, run);
  if (run.called_directly && question.stated.micro_batch == 0) question.stated.micro_batch = 1;
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

graph::Graph graph_of(const RowRun& run, std::int64_t micro_batch) {
  // Rows of training state the rate of a product's forward pass.
  if (run.passes != Passes::gradients)
    if (auto primitive = primitive_graph(run.workload, run.metric)) return std::move(*primitive);
  // One sample of these is none that anybody times: it stands for the published batch.
  const std::int64_t batch = micro_batch > 1 ? micro_batch : 0;
  if (auto batched = batched_primitive(run.workload, run.passes, batch, bytes_of_elements(run)))
    return std::move(*batched);
  const run::Model model({.workload = run.workload, .model_options = run.options});
  return run.training ? model.training_step()(micro_batch) : model.inference()(micro_batch);
}

}  // namespace superstep::lab
