#include "superstep/facility/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <expected>
#include <map>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/lab/advise/processor.h"
#include "superstep/lab/by_law.h"
#include "superstep/lab/graphs_by_batch.h"
#include "superstep/lab/processor/prediction.h"
#include "superstep/lab/question.h"
#include "superstep/machine/configuration/resolve.h"
#include "superstep/machine/ipu/kept_plans.h"

namespace superstep::facility {
namespace {

std::string where_of(const Workflow& workflow, const Task& task) {
  return fmt::format("{}:{}", workflow.file, task.line);
}

// Models of tasks and their predictions, each made once.
class Predictions {
 public:
  Predictions(const Workflow& workflow, const Facility& facility, const TimingSettings& settings)
      : workflow_(workflow), facility_(facility), settings_(settings) {}

  // Seconds of a firing and how they were found, or why there are none.
  std::expected<Choice, std::string> of(std::size_t t, std::size_t p, int devices) {
    const Task& task = workflow_.tasks[t];
    const Partition& partition = facility_.partitions[p];
    if (partition.machine.empty())
      return std::unexpected("no machine is named there, and no time is stated for it");
    const std::string key = fmt::format("{} {} {} {}", t, partition.machine, partition.stack, devices);
    const auto known = made_.find(key);
    const auto found = known != made_.end()
                           ? known->second
                           : made_.emplace(key, predicted(task, t, partition, devices)).first->second;
    return found;
  }

 private:
  struct Graphs {
    run::Model model;
    lab::GraphsByBatch graphs;
    Graphs(const run::TrainSettings& settings, bool trains) : model(settings), graphs(model, trains) {}
  };

  run::TrainSettings settings_of(const Task& task) const {
    return lab::as_workload({.workload = task.model, .model_options = task.options});
  }

  Graphs& graphs(const Task& task, std::size_t t) {
    auto& made = graphs_[t];
    try {
      if (!made) made = std::make_unique<Graphs>(settings_of(task), task.trains);
    } catch (const Error& error) {
      throw error.in(where_of(workflow_, task));
    }
    return *made;
  }

  const machine::Machine& machine_of(const Partition& partition) {
    const std::string key = partition.machine + " " + partition.stack;
    const auto known = machines_.find(key);
    if (known != machines_.end()) return known->second;
    machine::Machine machine = partition.machine == "cpu"
                                   ? lab::this_computer(settings_.threads, settings_.progress)
                                   : machine::find_machine(partition.machine);
    if (!partition.stack.empty()) machine = machine.driven_by(partition.stack);
    return machines_.emplace(key, std::move(machine)).first->second;
  }

  std::expected<Choice, std::string> predicted(const Task& task, std::size_t t, const Partition& partition,
                                               int devices) {
    try {
      const machine::Machine& machine = machine_of(partition);
      if (settings_.progress)
        settings_.progress(fmt::format("predicting {} on {}", task.name, partition.name));
      if (task.trains && machine::only_serves(machine.style()))
        return std::unexpected("serves only: no training runs on it");
      if (machine.processor()) return on_processor(task, t, machine, devices);
      return on_machine(task, t, machine, devices);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted || error.code() == ErrorCode::internal) throw;
      if (error.code() == ErrorCode::unsupported) return std::unexpected(error.message());
      throw error.in(where_of(workflow_, task));
    }
  }

  double samples_of(const Task& task, std::size_t t) {
    const double epochs = task.epochs > 0 ? task.epochs : graphs(task, t).model.recipe().epochs;
    return static_cast<double>(task.samples > 0 ? task.samples : 1) * (task.trains ? epochs : 1);
  }

  std::expected<Choice, std::string> on_machine(const Task& task, std::size_t t,
                                                const machine::Machine& as_filed, int devices) {
    Graphs& of = graphs(task, t);
    const machine::Machine machine = lab::ModelByLaw(of.model, task.trains).on(as_filed);
    if (!task.precision.empty() && !machine.computes_in(task.precision))
      return std::unexpected(fmt::format("computes in {} alone", join(machine.precisions(), ", ")));
    machine::Question question = lab::question_of(of.model, task.trains);
    if (machine.stack()) question.software = machine.stack()->name;
    question.stated.precision = task.precision;
    question.stated.units = devices;
    question.stated.micro_batch = task.batch;
    if (!task.trains && task.batch == 0)
      question.stated.micro_batch = std::min<std::int64_t>(task.samples, most_at_once);
    const machine::Answer found = machine::answer(
        machine, question, [&](std::int64_t batch) -> const graph::Graph& { return of.graphs.at(batch); });
    const machine::Prediction& prediction = found.prediction;
    if (!prediction.fits)
      return std::unexpected("does not fit in the memory" +
                             (found.nearest.empty() ? "" : ": " + found.nearest));
    if (!prediction.unsupported.empty())
      return std::unexpected("no cost model for " + join(prediction.unsupported, ", "));
    const machine::PredictSettings& cut = found.configuration.settings;
    return choice_of(
        task, t, devices, prediction.samples, lab::fed_seconds(prediction),
        fmt::format("predicted: {}, {}, micro-batch {}, {} unit{}", machine.id(), cut.precision.name,
                    cut.micro_batch, prediction.units, prediction.units == 1 ? "" : "s"));
  }

  std::expected<Choice, std::string> on_processor(const Task& task, std::size_t t,
                                                  const machine::Machine& machine, int devices) {
    if (devices > 1) return std::unexpected("a processor's plan takes one device");
    lab::SearchSettings search{.trains = task.trains, .goal = lab::Goal::throughput};
    const std::int64_t batch = task.batch > 0 ? task.batch
                               : task.trains
                                   ? graphs(task, t).model.settings().batch
                                   : std::min(std::max<std::int64_t>(task.samples, 1), most_at_once);
    search.fixed_batch = batch;
    if (!task.precision.empty()) search.precisions = {task.precision};
    const auto options = lab::options_on_processor(machine, settings_of(task), settings_.threads, search);
    const lab::Option* best = nullptr;
    for (const lab::Option& option : options)
      if (option.prediction.fits && (!best || option.prediction.step_seconds < best->prediction.step_seconds))
        best = &option;
    if (!best) return std::unexpected("does not fit in the memory, or the processor does not compute so");
    return choice_of(
        task, t, devices, best->prediction.samples, lab::fed_seconds(best->prediction),
        fmt::format("predicted: {}, {}, batch {}", machine.id(), best->settings.precision.name, batch));
  }

  std::expected<Choice, std::string> choice_of(const Task& task, std::size_t t, int devices,
                                               double step_samples, const lab::Figure& step,
                                               std::string how) {
    const double steps = std::ceil(samples_of(task, t) / step_samples);
    return Choice{
        .place = {.devices = devices, .seconds = {steps * step.value, steps * step.low, steps * step.high}},
        .how = std::move(how)};
  }

  static constexpr std::int64_t most_at_once =
      1024;  // samples of a step: beyond it nothing here gains (chosen)

  const Workflow& workflow_;
  const Facility& facility_;
  const TimingSettings& settings_;
  std::map<std::string, machine::Machine> machines_;
  std::map<std::size_t, std::unique_ptr<Graphs>> graphs_;
  std::map<std::string, std::expected<Choice, std::string>> made_;
  machine::ipu::KeptPlans kept_;
};

const Amount* stated_for(const Task& task, const Partition& partition) {
  for (const std::string& name : {partition.name, partition.machine, std::string("any")})
    for (const Stated& stated : task.seconds)
      if (!name.empty() && stated.on == name) return &stated.seconds;
  return nullptr;
}

bool is_place(const Facility& facility, const std::string& name) {
  return std::ranges::any_of(facility.partitions, [&](const Partition& one) { return one.name == name; }) ||
         std::ranges::any_of(facility.sites, [&](const Site& one) { return one.name == name; });
}

std::vector<std::string> places_of(const Facility& facility) {
  std::vector<std::string> names;
  for (const Partition& one : facility.partitions) names.push_back(one.name);
  for (const Site& one : facility.sites) names.push_back(one.name);
  return names;
}

bool is_machine(const std::string& name) {
  if (name == "cpu") return true;
  try {
    machine::find_machine(name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Names in `on` and `seconds` that nothing has. A file for several facilities may state times of machines
// that are not in this one.
void require_names(const Workflow& workflow, const Task& task, const Facility& facility) {
  for (const std::string& name : task.on)
    if (!is_place(facility, name))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("task {}: on has '{}', which is no partition and no site of {}", task.name,
                              name, facility.file),
                  where_of(workflow, task), unknown_name_hint(name, places_of(facility)));
  for (const Stated& stated : task.seconds) {
    const bool partition = std::ranges::any_of(facility.partitions, [&](const Partition& one) {
      return one.name == stated.on || one.machine == stated.on;
    });
    if (stated.on != "any" && !partition && !is_machine(stated.on))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("task {}: seconds has '{}', which is no partition of {} and no machine",
                              task.name, stated.on, facility.file),
                  where_of(workflow, task), unknown_name_hint(stated.on, places_of(facility)));
  }
}

bool may_be_on(const Task& task, const Facility& facility, const Partition& partition) {
  if (task.on.empty()) return true;
  const std::string& site = facility.sites[static_cast<std::size_t>(partition.site)].name;
  return std::ranges::any_of(task.on,
                             [&](const std::string& name) { return name == partition.name || name == site; });
}

// Why a firing of so many seconds cannot be there; empty: it can.
std::string obstacle(const Task& task, const Partition& partition, int devices) {
  if (devices > partition.devices)
    return fmt::format("{} devices are asked for, and it has {}", devices, partition.devices);
  if (!task.job && !partition.queue.empty() && std::max(1, task.copies) * devices > partition.devices)
    return fmt::format("{} copies of {} devices are asked for, and it has {}", std::max(1, task.copies),
                       devices, partition.devices);
  if (task.job && partition.longest > 0 && partition.start.high >= partition.longest)
    return "a job's start takes longer than a job may";
  return {};
}

TaskChoices choices_of_task(std::size_t t, const Workflow& workflow, const Facility& facility,
                            Predictions& predictions) {
  const Task& task = workflow.tasks[t];
  TaskChoices found;
  for (std::size_t p = 0; p < facility.partitions.size(); ++p) {
    const Partition& partition = facility.partitions[p];
    if (!may_be_on(task, facility, partition)) continue;
    for (const int devices : task.devices) {
      std::string why = obstacle(task, partition, devices);
      if (why.empty()) {
        const Amount* stated = stated_for(task, partition);
        auto choice = stated ? Choice{.place = {.devices = devices, .seconds = *stated}, .how = "stated"}
                      : task.model.empty()
                          ? std::expected<Choice, std::string>(std::unexpected("no time is stated for it"))
                          : predictions.of(t, p, devices);
        if (choice) {
          choice->place.partition = static_cast<int>(p);
          found.choices.push_back(*choice);
          continue;
        }
        why = choice.error();
      }
      found.refused.push_back(fmt::format("{}: {}", partition.name, why));
    }
  }
  return found;
}

}  // namespace

std::vector<TaskChoices> choices_of(const Workflow& workflow, const Facility& facility,
                                    const TimingSettings& settings) {
  for (const Task& task : workflow.tasks) require_names(workflow, task, facility);
  Predictions predictions(workflow, facility, settings);
  std::vector<TaskChoices> all;
  for (std::size_t t = 0; t < workflow.tasks.size(); ++t) {
    all.push_back(choices_of_task(t, workflow, facility, predictions));
    if (!all.back().choices.empty()) continue;
    const auto& refused = all.back().refused;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("task {} can run nowhere in {}: {}", workflow.tasks[t].name, facility.file,
                            refused.empty() ? "its on = [...] leaves no partition" : join(refused, "; ")),
                where_of(workflow, workflow.tasks[t]));
  }
  return all;
}

std::vector<double> power_of(const Facility& facility) {
  std::vector<double> watts;
  for (const Partition& partition : facility.partitions) {
    double power = partition.power;
    if (power == 0 && !partition.machine.empty() && partition.machine != "cpu")
      power = machine::find_machine(partition.machine).value("power");
    watts.push_back(power);
  }
  return watts;
}

std::vector<int> sites_of_sources(const Workflow& workflow, const Facility& facility) {
  std::vector<int> sites;
  std::vector<std::string> names;
  for (const Site& site : facility.sites) names.push_back(site.name);
  for (const Source& source : workflow.sources) {
    const auto found = std::ranges::find(names, source.at);
    if (found == names.end())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("source {} is at '{}', which is no site of {}", source.name, source.at, facility.file),
          workflow.file, unknown_name_hint(source.at, names));
    sites.push_back(static_cast<int>(found - names.begin()));
  }
  return sites;
}

}  // namespace superstep::facility
