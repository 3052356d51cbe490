#include "superstep/study/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "superstep/base/text.h"
#include "superstep/lab/validate/language_rows.h"
#include "superstep/machine/configuration/set_ups.h"
#include "superstep/study/known.h"
#include "superstep/study/to_quality.h"

namespace superstep::study {
namespace {

using Words = std::vector<std::string>;

bool names(const std::vector<std::string>& those, const std::string& one) {
  return those.empty() || std::ranges::find(those, one) != those.end();
}

const Measure* measure_of(const Study& study, const std::string& workload, const std::string& note) {
  for (const Measure& measure : study.measures)
    if (names(measure.workloads, workload) && names(measure.notes, note)) return &measure;
  return nullptr;
}

const Execution* execution_of(const Study& study, const std::string& workload) {
  for (const Execution& execution : study.executions)
    if (names(execution.workloads, workload)) return &execution;
  return nullptr;
}

std::string file_name(const Words& words) {
  std::string name;
  for (const std::string& word : words) {
    if (!name.empty()) name += '-';
    for (const char letter : word)
      if (std::isalnum(static_cast<unsigned char>(letter)) || letter == '.' || letter == '_')
        name += letter;
      else if (letter == ',' || letter == '=')
        name += '_';
  }
  return name;
}

std::size_t add(Plan& plan, Job job) {
  job.key = file_name(job.command);
  const auto found = std::ranges::find(plan.jobs, job.key, &Job::key);
  if (found != plan.jobs.end()) return static_cast<std::size_t>(found - plan.jobs.begin());
  plan.jobs.push_back(std::move(job));
  return plan.jobs.size() - 1;
}

// The samples a call: what the study says, or the cell's own as far as the study lets it.
std::int64_t batch_of(const Measure& measure, const Cells& cells, const Cell& cell) {
  if (measure.batch > 0) return measure.batch;
  std::int64_t batch = cells.count(cell, "micro_batch");
  if (batch == 0) batch = cells.count(cell, "global_batch");
  if (batch == 0 || measure.most_batch == 0) return batch > 0 ? batch : measure.most_batch;
  return std::min(batch, measure.most_batch);
}

std::string precision_of(const Measure& measure, const std::string& published) {
  if (!measure.precision.empty()) return measure.precision;
  return published.empty() || published == "fp32" || published == "tf32" ? "f32" : "bf16";
}

// A model's name with its options: of a published form those of the form.
void add_model(Words& command, const std::string& workload, const Measure& measure) {
  const machine::Form* form = machine::form_of(workload);
  command.push_back(form ? form->workload : workload);
  if (form)
    for (const std::string& option : form->options) command.insert(command.end(), {"--set", option});
  for (const std::string& option : measure.options) command.insert(command.end(), {"--set", option});
}

Words bench_command(const std::string& workload, const std::string& mode, const Recipe& recipe,
                    const std::string& precision, bool with_peak) {
  Words command{"bench"};
  if (const std::optional<lab::Primitive> primitive = primitive_of(workload))
    command.insert(command.end(), {lab::name_of(primitive->kind), "--config", workload});
  else
    add_model(command, workload, *recipe.measure);
  command.insert(command.end(), {"--mode", mode, "--precision", precision});
  if (recipe.batch > 0) command.insert(command.end(), {"--batch", fmt::format("{}", recipe.batch)});
  if (!with_peak) command.emplace_back("--no-peak");
  return command;
}

void add_bench(Plan& plan, Recipe& recipe, const std::string& workload, const std::string& mode,
               const std::string& metric) {
  const auto job = [&](const std::string& precision) {
    recipe.jobs.push_back(add(
        plan, {.key = {},
               .command = bench_command(workload, mode, recipe, precision, metric == "compute_utilization"),
               .way = Way::bench,
               .least = recipe.measure->least}));
  };
  if (metric != "speedup_half_over_single") return job(recipe.precision);
  job("bf16");
  job("f32");
}

void add_trainings(Plan& plan, Recipe& recipe, const std::string& workload) {
  const Measure& measure = *recipe.measure;
  for (int seed = 1; seed <= measure.seeds; ++seed) {
    Words command{"train"};
    add_model(command, workload, measure);
    command.insert(command.end(), {"--precision", recipe.precision, "--seed", fmt::format("{}", seed)});
    if (recipe.batch > 0) command.insert(command.end(), {"--batch", fmt::format("{}", recipe.batch)});
    if (measure.samples > 0) command.insert(command.end(), {"--samples", fmt::format("{}", measure.samples)});
    if (!measure.gradient.empty()) command.insert(command.end(), {"--gradient", measure.gradient});
    recipe.jobs.push_back(add(plan, {.key = {},
                                     .command = std::move(command),
                                     .way = Way::train,
                                     .steps = measure.steps,
                                     .least = measure.least}));
  }
}

void add_scaling(Plan& plan, Recipe& recipe, const std::string& workload, int processors) {
  Words ranks;
  for (int count = 1; count <= processors; count *= 2) ranks.push_back(fmt::format("{}", count));
  Words command{"scale"};
  add_model(command, workload, *recipe.measure);
  command.insert(command.end(),
                 {"--ranks", join(ranks, ","), "--threads", "1", "--precision", recipe.precision});
  if (recipe.batch > 0) command.insert(command.end(), {"--batch", fmt::format("{}", recipe.batch)});
  recipe.jobs.push_back(add(plan, {.key = {},
                                   .command = std::move(command),
                                   .way = Way::scale,
                                   .steps = recipe.measure->steps > 0 ? recipe.measure->steps : 50,
                                   .least = recipe.measure->least}));
}

void add_quality(Plan& plan, Recipe& recipe, const Cells& cells, const std::string& workload) {
  const Measure& measure = *recipe.measure;
  std::int64_t fewest = 1;
  for (const Cell& cell : cells.list) fewest = std::max(fewest, cells.count(cell, "micro_batch"));
  recipe.jobs.push_back(add(plan, {.key = {},
                                   .command = quality_command(cells, recipe, workload),
                                   .way = Way::quality,
                                   .samples = measure.samples,
                                   .fewest_samples = fewest,
                                   .epochs = measure.epochs,
                                   .least = measure.least}));
}

// "allreduce-64.5M" on as many ranks as there are processors.
void add_all_reduce(Plan& plan, Recipe& recipe, const std::string& workload, int processors) {
  char* unit = nullptr;
  const double number = std::strtod(workload.c_str() + std::string_view("allreduce-").size(), &unit);
  const double scale = *unit == 'K' ? 1e3 : *unit == 'M' ? 1e6 : *unit == 'G' ? 1e9 : 1;
  const auto bytes = static_cast<std::int64_t>(std::llround(number * scale)) * 4;
  recipe.jobs.push_back(
      add(plan, {.key = {},
                 .command = {"bench", "all-reduce", "--ranks", fmt::format("{}", processors), "--sizes",
                             fmt::format("{}", bytes)},
                 .way = Way::all_reduce,
                 .least = recipe.measure->least}));
}

// Why a cell's figure cannot be measured by this way; empty: it can.
std::string obstacle(const Cells& cells, const Cell& cell, Way way, int processors) {
  const std::string &metric = cells.text(cell, "metric"), &workload = cells.text(cell, "workload");
  if (metric.starts_with("ratio_to_")) return "a ratio of two machines, and this computer is one";
  if (metric == "throughput_per_price") return "this computer has no price";
  if (metric == "compute_time" || metric == "data_time" || metric == "launch_time")
    return "this computer's step is timed whole; superstep profile divides it";
  if (way == Way::quality)
    return is_of_quality(metric) || is_quality(metric)
               ? ""
               : "trainings to a quality say its steps and its time alone";
  if (is_of_quality(metric)) return "no training to a quality is part of this study";
  if (lab::is_language_model(workload)) return "bench times models of the zoo, and this is a shape alone";
  if (is_quality(metric) != (way == Way::train) && metric != "time_to_solution" &&
      metric != "epochs_to_target")
    return is_quality(metric) ? "no training is part of this study"
                              : "a training's speed is not what is published";
  if (!primitive_of(workload) && (workload.starts_with("gemm_") || workload.starts_with("conv_")))
    return "bench times the shapes of the paper's tables, and this is none of them";
  if (way == Way::scale && cells.count(cell, "units") > processors)
    return fmt::format("{} ranks, and this computer has {} processors", cells.count(cell, "units"),
                       processors);
  if (way == Way::all_reduce && processors < 2) return "one processor has nobody to exchange with";
  return "";
}

Recipe measured_recipe(Plan& plan, const Study& study, const Cells& cells, const Cell& cell, int processors) {
  const std::string& workload = cells.text(cell, "workload");
  Recipe recipe{.jobs = {},
                .measure = measure_of(study, workload, cells.text(cell, "note")),
                .precision = {},
                .why = {}};
  if (!recipe.measure) recipe.why = "the study measures nothing of it here";
  if (recipe.measure && recipe.measure->way == Way::nothing) recipe.why = recipe.measure->why;
  if (recipe.why.empty()) recipe.why = obstacle(cells, cell, recipe.measure->way, processors);
  if (!recipe.why.empty()) return recipe;
  const Measure& measure = *recipe.measure;
  const std::string subject = measure.workload.empty() ? workload : measure.workload;
  recipe.batch = batch_of(measure, cells, cell);
  recipe.precision = precision_of(measure, cells.text(cell, "precision"));
  const std::string& metric = cells.text(cell, "metric");
  switch (measure.way) {
    case Way::bench:
      if (subject == "conv2d")
        for (const lab::Primitive& kernel : lab::published_primitives(lab::PrimitiveKind::conv))
          add_bench(plan, recipe, kernel.name, "infer", metric);
      else
        add_bench(plan, recipe, subject, cells.text(cell, "mode"), metric);
      break;
    case Way::train: add_trainings(plan, recipe, subject); break;
    case Way::scale: add_scaling(plan, recipe, subject, processors); break;
    case Way::all_reduce: add_all_reduce(plan, recipe, subject, processors); break;
    case Way::quality: add_quality(plan, recipe, cells, workload); break;
    case Way::nothing:
    case Way::engine: break;
  }
  return recipe;
}

bool is_executable_metric(const std::string& metric) {
  return metric == "throughput" || metric == "epoch_time" || metric == "step_time" ||
         metric == "latency_per_sample";
}

Recipe executed_recipe(Plan& plan, const Study& study, const Cells& cells, const Cell& cell) {
  const std::string &workload = cells.text(cell, "workload"), &machine = cells.text(cell, "machine");
  Recipe recipe{.jobs = {}, .measure = nullptr, .precision = "f32", .why = {}};
  const Execution* execution = execution_of(study, workload);
  if (machine != "gc200" && machine != "bow" && machine != "gc2")
    recipe.why = "the engine executes IPUs alone";
  else if (!execution)
    recipe.why = "the study executes nothing of it";
  else if (cells.count(cell, "units") > 1)
    recipe.why = "several chips";
  else if (!is_executable_metric(cells.text(cell, "metric")))
    recipe.why = "not a time of a step";
  if (!recipe.why.empty()) return recipe;
  recipe.batch =
      execution->batch > 0 ? execution->batch : std::max<std::int64_t>(1, cells.count(cell, "micro_batch"));
  if (execution->most_batch > 0) recipe.batch = std::min(recipe.batch, execution->most_batch);
  Words command{"profile"};
  add_model(command, workload, Measure{});
  command.insert(command.end(), {"--on", machine, "--mode", cells.text(cell, "mode"), "--batch",
                                 fmt::format("{}", recipe.batch)});
  recipe.jobs.push_back(
      add(plan, {.key = {}, .command = std::move(command), .way = Way::engine, .least = execution->least}));
  return recipe;
}

}  // namespace

std::vector<std::string> Job::words(double seconds, double share) const {
  std::vector<std::string> all = command;
  const auto scaled = [&](std::int64_t fewest) {
    return fmt::format("{}",
                       std::max<std::int64_t>(fewest, std::llround(static_cast<double>(steps) * share)));
  };
  switch (way) {
    case Way::bench: all.insert(all.end(), {"--seconds", fmt::format("{:.2g}", seconds)}); break;
    case Way::train: all.insert(all.end(), {"--steps", scaled(2)}); break;
    case Way::scale: all.insert(all.end(), {"--repeat", share < 1 ? "1" : "3", "--steps", scaled(4)}); break;
    case Way::all_reduce: all.insert(all.end(), {"--iterations", share < 1 ? "3" : "20"}); break;
    case Way::quality: {
      // Less time has fewer samples and epochs; more leaves the question as it is.
      const double part = std::min(share, 1.0);
      const auto fewer = std::llround(static_cast<double>(samples) * part);
      all.insert(all.end(), {"--samples", fmt::format("{}", std::max<std::int64_t>(fewest_samples, fewer)),
                             "--epochs", fmt::format("{:g}", std::max(1.0, std::round(epochs * part)))});
      break;
    }
    case Way::nothing:
    case Way::engine: break;
  }
  return all;
}

Plan plan_of(const Study& study, const Cells& cells, int processors) {
  Plan plan;
  for (const Cell& cell : cells.list)
    plan.measured.push_back(measured_recipe(plan, study, cells, cell, processors));
  for (const Cell& cell : cells.list) plan.executed.push_back(executed_recipe(plan, study, cells, cell));
  return plan;
}

}  // namespace superstep::study
