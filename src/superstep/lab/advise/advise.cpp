#include "superstep/lab/advise/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/advise/here.h"
#include "superstep/lab/advise/processor.h"
#include "superstep/lab/advise/reasons.h"
#include "superstep/lab/by_law.h"
#include "superstep/lab/graphs_by_batch.h"
#include "superstep/lab/processor/prediction.h"
#include "superstep/lab/question.h"

namespace superstep::lab {
namespace {

using machine::Machine;

// Machines that only run a model for an answer.
std::vector<Machine> asked_machines(const AdviseSettings& settings) {
  std::vector<Machine> asked;
  for (const std::string& name : settings.machines)
    asked.push_back(name == "cpu" ? this_computer(settings.threads, [](const std::string&) {})
                                  : machine::find_machine(name));
  if (!settings.machines.empty()) return asked;
  asked = machine::machines();
  if (auto here = measured_computer(settings.threads)) asked.push_back(std::move(*here));
  // Of what has no file, a data sheet.
  for (Machine& machine : machines_of_sheets()) asked.push_back(std::move(machine));
  return asked;
}

double number_for(const std::map<std::string, double>& numbers, const std::string& machine) {
  const auto found = numbers.find(machine);
  return found == numbers.end() ? 0 : found->second;
}

// Generated data are made for it: only the goals that count a whole training ask.
double recipe_samples_of(const AdviseSettings& settings, const run::Model& model, ThreadPool& pool) {
  const bool counted = settings.goal == Goal::time_to_quality || settings.goal == Goal::cost;
  if (!settings.trains || !counted) return 0;
  run::TaskSettings samples = task_settings_of(settings.model, pool);
  samples.model_options = model.settings().model_options;
  const std::unique_ptr<run::Task> task = model.open_task(samples);
  return model.settings().epochs * static_cast<double>(task->training_count());
}

SearchSettings search_of(const AdviseSettings& settings, const run::Model& model, double recipe_samples) {
  SearchSettings search{.trains = settings.trains, .goal = settings.goal, .units = settings.units};
  constexpr std::int64_t served_at_once = 1024;  // chosen: beyond it nothing here gains
  search.most_samples = settings.most_samples > 0 ? settings.most_samples
                        : settings.trains         ? model.settings().batch
                                                  : served_at_once;
  search.fixed_batch = model.fixed_batch();
  search.question = question_of(model, settings.trains);
  search.question.stated.units = settings.units;
  search.input_bytes = settings.input_bytes;
  search.precisions = settings.precisions;
  search.latency_limit = settings.latency_limit;
  search.rate_wanted = settings.rate_wanted;
  search.context.recipe_samples = recipe_samples;
  return search;
}

void require_goal_is_counted(const AdviseSettings& settings) {
  if (settings.goal == Goal::time_to_quality && !settings.trains)
    throw Error(ErrorCode::invalid_argument, "only a training has a time to quality", "--for",
                "give --mode train, or --for latency");
  if (settings.goal == Goal::cost && settings.prices.empty())
    throw Error(ErrorCode::invalid_argument, "costs are counted from prices, and none is given", "--for cost",
                "give --price MACHINE=PRICE of a unit-hour, for each machine that you can have");
}

void find_best(MachineAdvice& advice, const SearchSettings& search) {
  if (const Option* best = best_of(advice.options, search.goal))
    advice.best = static_cast<int>(best - advice.options.data());
  advice.reasons = reasons_of(advice.options, advice.best_option(), search);
  if (const Option* best = advice.best_option()) add_guesses(advice.machine, *best, advice.reasons);
}

// A processor whose kernels were measured is ranked among the others, by the plans that would run on it.
void add_processor(MachineAdvice& advice, const run::Model& model, int threads,
                   const SearchSettings& search) {
  try {
    advice.options = options_on_processor(advice.machine, model.settings(), threads, search);
    find_best(advice, search);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    advice.reasons = {error.message()};
  }
}

MachineAdvice advice_on(const Machine& machine, GraphsByBatch& graphs, const run::Model& model,
                        const AdviseSettings& settings, SearchSettings search,
                        const std::map<std::string, int>& operators, machine::PredictionsByLaw& known) {
  MachineAdvice advice{.machine = machine};
  advice.coverage = coverage_of(machine, operators, settings.trains);
  if (settings.trains && machine::only_serves(machine.style())) {
    advice.reasons = {"serves only: no training runs on it"};
    return advice;
  }
  const double power = number_for(settings.powers, machine.id());
  search.context.unit_power = power > 0 ? power : machine.value("power");
  search.context.unit_price = number_for(settings.prices, machine.id());
  if (settings.goal == Goal::cost && search.context.unit_price == 0) {
    advice.reasons = {fmt::format("no price given (--price {}=...)", machine.id())};
    return advice;
  }
  if (machine.processor()) {
    add_processor(advice, model, settings.threads, search);
    return advice;
  }
  if (machine.stack()) search.question.software = machine.stack()->name;
  const bool asked = !search.precisions.empty();
  std::erase_if(search.precisions, [&](const std::string& name) { return !machine.computes_in(name); });
  if (asked && search.precisions.empty()) {
    advice.reasons = {"computes in " + join(machine.precisions(), ", ") + " alone"};
    return advice;
  }
  advice.options = options_on(
      machine, [&](std::int64_t batch) -> const graph::Graph& { return graphs.at(batch); }, search, known);
  find_best(advice, search);
  if (const Option* best = advice.best_option())
    advice.changes = changes_of(machine, model, settings.trains, *best, search);
  return advice;
}

bool surely_better(const Figure& a, const Figure& b, Goal goal) {
  return larger_is_better(goal) ? a.low > b.high : a.high < b.low;
}

// Best first; a place is certain only as far as intervals do not overlap. Machines that miss a limit come
// after all that keep it.
void rank(std::vector<MachineAdvice>& machines, Goal goal) {
  const auto group = [](const MachineAdvice& advice) {
    return !advice.best_option() ? 2 : advice.best_option()->within_limits ? 0 : 1;
  };
  std::ranges::stable_sort(machines, [&](const MachineAdvice& a, const MachineAdvice& b) {
    if (group(a) != group(b)) return group(a) < group(b);
    return a.best_option() && better(a.best_option()->figure, b.best_option()->figure, goal);
  });
  for (MachineAdvice& one : machines) {
    if (!one.best_option()) continue;
    int ahead = 0, behind = 0, all = 0;
    for (const MachineAdvice& other : machines) {
      if (!other.best_option()) continue;
      ++all;
      const bool same = group(one) == group(other);
      ahead += same ? surely_better(other.best_option()->figure, one.best_option()->figure, goal)
                    : group(other) < group(one);
      behind += same ? surely_better(one.best_option()->figure, other.best_option()->figure, goal)
                     : group(other) > group(one);
    }
    one.first_place = 1 + ahead;
    one.last_place = all - behind;
  }
}

}  // namespace

std::vector<Machine> driven_by(const std::string& stack, std::vector<Machine> machines, bool named) {
  if (stack.empty()) return machines;
  const std::vector<std::string> names(machine::stack_names().begin(), machine::stack_names().end());
  if (std::ranges::find(names, stack) == names.end())
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no stack", stack), "--stack",
                unknown_name_hint(stack, names));
  if (!named) std::erase_if(machines, [&](const Machine& machine) { return !machine.has_stack(stack); });
  if (machines.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("no machine's file has numbers of '{}'", stack),
                "--stack");
  for (Machine& machine : machines) machine = machine.driven_by(stack);
  return machines;
}

Advice advise(const AdviseSettings& settings) {
  require_goal_is_counted(settings);
  std::vector<Machine> asked =
      driven_by(settings.stack, asked_machines(settings), !settings.machines.empty());
  const run::Model model(as_workload(settings.model));
  const ModelByLaw by_law(model, settings.trains);
  for (Machine& machine : asked) machine = by_law.on(std::move(machine));
  GraphsByBatch graphs(model, settings.trains);
  require_cost_models(model, graphs.at(std::max<std::int64_t>(1, model.fixed_batch())));
  const std::map<std::string, int> operators =
      onnx_operators(model.inference()(std::max<std::int64_t>(1, model.fixed_batch())));
  Advice advice{.model = settings.model.workload,
                .trains = settings.trains,
                .goal = settings.goal,
                .stack = settings.stack};
  ThreadPool pool(settings.threads);
  advice.recipe_samples = recipe_samples_of(settings, model, pool);
  advice.search = search_of(settings, model, advice.recipe_samples);
  advice.machines.assign(asked.size(), MachineAdvice{.machine = asked.front()});
  Progress progress = Progress::passing("advise", static_cast<double>(asked.size()), "machines");
  machine::PredictionsByLaw known;
  std::mutex mutex;
  double done = 0;
  pool.parallel_for(static_cast<std::int64_t>(asked.size()), [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    advice.machines[i] = advice_on(asked[i], graphs, model, settings, advice.search, operators, known);
    const std::lock_guard lock(mutex);
    progress.update(++done, asked[i].id());
  });
  progress.finish();
  for (MachineAdvice& one : advice.machines) {
    advice.predictions += one.options.size();
    one.of_sheet = settings.machines.empty() && of_sheet(one.machine);
  }
  rank(advice.machines, settings.goal);
  if (settings.measures) advice.here = measure_here(settings, advice.recipe_samples);
  return advice;
}

}  // namespace superstep::lab
