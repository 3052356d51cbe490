#include "superstep/study/allocation/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/advise/goal.h"
#include "superstep/lab/advise/shared_batch.h"
#include "superstep/lab/graphs_by_batch.h"
#include "superstep/lab/question.h"
#include "superstep/machine/configuration/resolve.h"
#include "superstep/machine/configuration/set_ups.h"
#include "superstep/record/member.h"
#include "superstep/run/model.h"
#include "superstep/run/task.h"

namespace superstep::study {
namespace {

// One model, whose graphs are made once for all machines.
class Scaling {
 public:
  Scaling(const std::string& workload, const std::vector<std::string>& options)
      : model_(lab::as_workload({.workload = workload, .model_options = options})), graphs_(model_, true) {}

  const run::Model& model() const { return model_; }

  ScalingPoint point(AllocationSubject& subject, int units, std::int64_t batch) {
    ScalingPoint point{.units = units, .batch = batch, .step = {}};
    try {
      fill(point, subject);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted) throw;
      point.step.words = error.message();
    }
    return point;
  }

  // Of what is fed for a sample.
  double sample_bytes(std::int64_t batch) {
    const graph::Graph& graph = graphs_.at(batch);
    double bytes = 0;
    for (const graph::ValueId id : graph.inputs())
      bytes += static_cast<double>(graph.type(id).shape.element_count()) *
               static_cast<double>(size_in_bytes(graph.type(id).element));
    return bytes / static_cast<double>(batch);
  }

 private:
  // Where each unit's share does not fit at once, it is accumulated in parts.
  machine::Prediction predicted(const AllocationSubject& subject, const ScalingPoint& point) {
    const machine::Machine machine = machine::find_machine(subject.machine);
    machine::Prediction at_once =
        lab::predict_shared(machine, model_, graphs_,
                            {.precision = subject.precision, .batch = point.batch, .units = point.units});
    if (at_once.fits || !at_once.unsupported.empty()) return at_once;
    machine::Question question = lab::question_of(model_, true);
    if (!subject.precision.empty()) question.stated.precision = subject.precision;
    question.stated.global_batch = point.batch;
    question.stated.units = question.stated.replicas = point.units;
    return machine::answer(machine, question,
                           [&](std::int64_t batch) -> const graph::Graph& { return graphs_.at(batch); })
        .prediction;
  }

  void fill(ScalingPoint& point, AllocationSubject& subject) {
    const machine::Prediction prediction = predicted(subject, point);
    for (const machine::Stage& stage : prediction.stages)
      if (stage.memory.total() > point.memory)
        point.memory = stage.memory.total(), point.memory_limit = stage.memory.limit;
    lab::require_possible(prediction);
    // Of one unit, a sample of the batch axis holds so many of what is counted; another plan has another
    // batch.
    const double held = prediction.samples / static_cast<double>(point.batch);
    if (!held_) held_ = held;
    constexpr double rounding = 1e-6;
    if (std::abs(held / *held_ - 1) > rounding)
      throw Error(ErrorCode::unsupported,
                  fmt::format("what fits takes {:g} samples an update", prediction.samples / *held_));
    const lab::Figure step = lab::fed_seconds(prediction);
    point.step = {step.value, step.low, step.high, "bound by " + prediction.bound_by_with_data()};
    point.samples = prediction.samples;
    point.throughput = prediction.samples / step.value;
    for (const std::string& doubt : prediction.beyond)
      add_doubt(subject, "beyond what was calibrated: " + doubt);
    for (const std::string& warning : prediction.warnings) add_doubt(subject, warning);
    if (point.units == 1 && !prediction.stages.empty())
      subject.checkpoint_bytes =
          prediction.stages.front().memory.parameters + prediction.stages.front().memory.optimizer;
  }

  static void add_doubt(AllocationSubject& subject, const std::string& doubt) {
    if (std::ranges::find(subject.doubts, doubt) == subject.doubts.end()) subject.doubts.push_back(doubt);
  }

  run::Model model_;
  lab::GraphsByBatch graphs_;
  std::optional<double> held_;  // of all machines: it is the model's
};

void fill_efficiencies(std::vector<ScalingPoint>& points) {
  if (points.empty() || !points.front().step.value) return;
  for (ScalingPoint& point : points)
    point.efficiency = point.throughput / (points.front().throughput * point.units);
}

void scale(AllocationSubject& subject, Scaling& scaling, int most_units) {
  for (int units = 1; units <= most_units; units *= 2) {
    subject.strong.push_back(scaling.point(subject, units, subject.batch));
    subject.weak.push_back(scaling.point(subject, units, subject.batch * units));
  }
  fill_efficiencies(subject.strong);
  fill_efficiencies(subject.weak);
  subject.unit_power = machine::find_machine(subject.machine).value("power");
  subject.sample_bytes = scaling.sample_bytes(subject.batch);
}

// Generated data are made for it, once a model.
double recipe_samples(const run::Model& model, int threads) {
  const Progress phase = Progress::phase("opening the data of " + model.settings().workload);
  ThreadPool pool(threads);
  const auto task = model.open_task({.seed = model.settings().seed,
                                     .model_options = model.settings().model_options,
                                     .labels_required = false,
                                     .pool = &pool});
  return model.settings().epochs * static_cast<double>(task->training_count());
}

void fill_samples(AllocationSubject& subject, const run::Model& model, const AllocationSettings& settings,
                  std::map<std::string, double>& known) {
  if (settings.samples > 0) {
    subject.samples = settings.samples;
    subject.samples_from = "as it was asked for (--training-samples)";
    return;
  }
  const auto [place, is_new] = known.emplace(subject.workload, 0);
  if (is_new) place->second = recipe_samples(model, settings.threads);
  subject.samples = place->second;
  subject.samples_from = fmt::format("the recipe: {:g} epochs of its data", model.settings().epochs);
}

// What the study trains on machines: model, machine and precision, once each.
struct Asked {
  std::string workload, machine, precision;
  auto operator<=>(const Asked&) const = default;
};

std::vector<Asked> asked_of(const Report& report, int& most_units) {
  std::vector<Asked> asked;
  for (const Cell& cell : report.cells.list) {
    const auto text = [&](const char* column) { return report.cells.text(cell, column); };
    most_units = std::max(most_units,
                          static_cast<int>(std::min<std::int64_t>(1024, report.cells.count(cell, "units"))));
    if (text("mode") != "train") continue;
    const Asked one{text("workload"), text("machine"), ""};
    if (std::ranges::find(asked, one) == asked.end()) asked.push_back(one);
  }
  return asked;
}

void add_versions(Allocation& allocation, const std::vector<std::optional<Kept>>& kept) {
  std::map<std::string, std::string> facts;
  for (const std::optional<Kept>& each : kept) {
    if (!each || each->results.empty()) continue;
    const record::Result& result = each->results.front();
    facts["program"] = fmt::format("superstep {} ({})", record::text_member(result.program, "version", "?"),
                                   record::text_member(result.program, "git", "?"));
    allocation.commands.push_back("superstep " + join(each->words, " "));
  }
  for (const auto& [name, text] : facts) allocation.versions.push_back({name, text});
}

// What `superstep scale` measured here.
void add_measured(Allocation& allocation, const std::vector<std::optional<Kept>>& kept) {
  for (const std::optional<Kept>& each : kept) {
    if (!each) continue;
    for (const record::Result& result : each->results) {
      const record::Quantity *efficiency = result.find("scaling_efficiency"),
                             *throughput = result.find("throughput");
      if (!efficiency || !throughput) continue;
      allocation.measured.push_back({result.workload, fmt::format("{}", result.units),
                                     format_si(throughput->value, "samples/s"),
                                     fmt::format("{:.2f}", efficiency->value)});
    }
  }
}

}  // namespace

Allocation allocation_of(const Report& report, const AllocationSettings& settings) {
  Allocation allocation{.title = report.study.title, .settings = settings};
  int most_units = 8;  // that are predicted at least: chosen
  std::map<std::string, double> samples;
  for (const Asked& asked : asked_of(report, most_units)) {
    try {
      Scaling scaling(asked.workload, {});
      AllocationSubject subject{.workload = asked.workload,
                                .machine = asked.machine,
                                .precision = asked.precision,
                                .batch = scaling.model().settings().batch};
      scale(subject, scaling, most_units);
      fill_samples(subject, scaling.model(), settings, samples);
      allocation.subjects.push_back(std::move(subject));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted) throw;
      allocation.missing.push_back(
          fmt::format("{} on {}: {}", asked.workload, asked.machine, error.message()));
    }
  }
  if (allocation.subjects.empty())
    throw Error(ErrorCode::invalid_argument, "trains no model that can be predicted on a machine",
                report.study.name,
                allocation.missing.empty() ? "--report allocation is of studies with cells of mode train"
                                           : join(allocation.missing, "; "));
  add_measured(allocation, report.kept);
  add_versions(allocation, report.kept);
  return allocation;
}

Allocation allocation_of(const QualityReport& report, const AllocationSettings& settings) {
  const QualitySettings& asked = report.settings;
  Allocation allocation{.title = fmt::format("{} until {}", asked.workload, report.goal),
                        .settings = settings};
  const int most_units = std::max(8, std::ranges::max(asked.units));
  Scaling scaling(asked.workload, asked.options);
  // Of each machine and precision the batch that is fastest on one unit.
  std::map<std::pair<std::string, std::string>, const QualityCost*> best;
  for (const QualityCost& cost : report.costs) {
    if (!cost.seconds.value || cost.units != asked.units.front()) continue;
    auto& known = best[{cost.machine, cost.precision}];
    if (!known || *cost.seconds.value < *known->seconds.value) known = &cost;
  }
  for (const auto& [key, cost] : best) {
    const Reached& reached = *std::ranges::find_if(report.reached, [&](const Reached& each) {
      return each.precision == cost->precision && each.batch == cost->batch;
    });
    const auto batch = static_cast<double>(cost->batch);
    AllocationSubject subject{
        .workload = asked.workload,
        .machine = cost->machine,
        .precision = cost->precision,
        .batch = cost->batch,
        .samples = reached.samples(),
        .samples_from = fmt::format("measured: {} seeds until {}", reached.seeds, report.goal),
        .samples_low = reached.steps_low * batch,
        .samples_high = reached.steps_high * batch};
    scale(subject, scaling, most_units);
    allocation.subjects.push_back(std::move(subject));
  }
  if (allocation.subjects.empty())
    throw Error(ErrorCode::invalid_argument, "no batch reached the target with every seed", asked.workload,
                "measure with more --epochs, or an easier --until");
  for (const Training& training : report.trainings)
    allocation.commands.push_back("superstep " + join(training.command, " "));
  return allocation;
}

}  // namespace superstep::study
