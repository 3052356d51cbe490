#include "superstep/study/quality/costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/advise/goal.h"
#include "superstep/lab/advise/shared_batch.h"
#include "superstep/lab/graphs_by_batch.h"
#include "superstep/machine/ipu/kept_plans.h"
#include "superstep/run/model.h"

namespace superstep::study {
namespace {

Figure none(std::string words) { return {.value = {}, .words = std::move(words)}; }

Figure scaled(const Figure& figure, double factor, std::string words) {
  if (!figure.value) return figure;
  return {*figure.value * factor, figure.low * factor, figure.high * factor, std::move(words)};
}

// Why its steps are not those of a target; empty: they are.
std::string obstacle(const Reached& reached) {
  if (reached.diverged > 0) return fmt::format("{} of {} seeds diverged", reached.diverged, reached.seeds);
  if (reached.reached == 0) return "no seed reached the target";
  if (!reached.by_all())
    return fmt::format("{} of {} seeds did not reach the target", reached.seeds - reached.reached,
                       reached.seeds);
  return "";
}

void predict(QualityCost& cost, const Reached& reached, const run::Model& model, lab::GraphsByBatch& graphs,
             const QualitySettings& settings) {
  if (std::string why = obstacle(reached); !why.empty()) {
    cost.seconds = cost.joules = cost.money = none(std::move(why));
    return;
  }
  try {
    const machine::Machine machine = machine::find_machine(cost.machine);
    const machine::Prediction prediction = lab::predict_shared(
        machine, model, graphs, {.precision = cost.precision, .batch = cost.batch, .units = cost.units});
    lab::require_possible(prediction);
    const lab::Figure step = lab::fed_seconds(prediction);
    cost.seconds = {reached.steps * step.value, reached.steps_low * step.low, reached.steps_high * step.high,
                    "bound by " + prediction.bound_by()};
    cost.joules = scaled(cost.seconds, machine.value("power") * cost.units, "at the data sheet's power");
    const auto price = settings.prices.find(cost.machine);
    constexpr double seconds_an_hour = 3600;
    cost.money =
        price == settings.prices.end()
            ? none("no price is given")
            : scaled(cost.seconds, price->second * cost.units / seconds_an_hour, "at the given price");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) throw;
    cost.seconds = cost.joules = cost.money = none(error.message());
  }
}

bool dominates(const QualityCost& a, const QualityCost& b) {
  return *a.seconds.value <= *b.seconds.value && *a.joules.value <= *b.joules.value &&
         (*a.seconds.value < *b.seconds.value || *a.joules.value < *b.joules.value);
}

void mark_best(std::vector<QualityCost>& costs) {
  for (QualityCost& cost : costs)
    cost.best = cost.seconds.value && std::ranges::none_of(costs, [&](const QualityCost& other) {
                  return other.seconds.value && dominates(other, cost);
                });
}

}  // namespace

std::vector<QualityCost> costs_of(const QualitySettings& settings, const std::vector<Reached>& reached) {
  std::vector<QualityCost> costs;
  std::vector<const Reached*> of;
  for (const Reached& each : reached)
    for (const std::string& machine : settings.machines)
      for (const int units : settings.units) {
        costs.push_back(
            {.precision = each.precision, .machine = machine, .batch = each.batch, .units = units});
        of.push_back(&each);
      }
  const machine::ipu::KeptPlans kept;
  // Graphs are f32 as built: the precision is the machine's question.
  const run::Model model({.workload = settings.workload, .model_options = settings.options});
  lab::GraphsByBatch graphs(model, true);
  Progress progress = Progress::passing("predicting", static_cast<double>(costs.size()), "cells");
  ThreadPool pool(settings.threads);
  pool.parallel_for(static_cast<std::int64_t>(costs.size()), [&](std::int64_t item, int worker) {
    const auto i = static_cast<std::size_t>(item);
    predict(costs[i], *of[i], model, graphs, settings);
    if (worker == 0) progress.update(static_cast<double>(i));
  });
  mark_best(costs);
  return costs;
}

}  // namespace superstep::study
