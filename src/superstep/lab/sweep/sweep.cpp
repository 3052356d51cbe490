#include "superstep/lab/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/advise/search.h"
#include "superstep/lab/by_law.h"
#include "superstep/lab/graphs_by_batch.h"
#include "superstep/lab/question.h"
#include "superstep/machine/configuration/resolve.h"

namespace superstep::lab {
namespace {

using machine::Machine;

// The resolver's configurations of one place of the grid.
void add_configurations(const Machine& machine, const machine::Question& question, GraphsByBatch& graphs,
                        std::vector<SweepPoint>& points) {
  const auto graph_at = [&](std::int64_t batch) -> const graph::Graph& { return graphs.at(batch); };
  for (machine::Configuration& one : machine::plausible_configurations(machine, question, graph_at)) {
    machine::balance_stages(machine, one, graph_at);
    points.push_back({.machine = machine.id(), .settings = std::move(one.settings)});
  }
}

// 0: open. Then the configuration is the resolver's, and what the grid's defaults say is not said.
std::vector<std::int64_t> micro_batches_of(const SweepSettings& settings, const machine::Question& asked) {
  if (asked.fixed_batch > 0) return {asked.fixed_batch};
  return settings.micro_batches.empty() ? std::vector<std::int64_t>{0} : settings.micro_batches;
}

void add_points_of(const Machine& machine, const SweepSettings& settings, const machine::Question& asked,
                   GraphsByBatch& graphs, std::vector<SweepPoint>& points) {
  const auto precisions = settings.precisions.empty() ? usual_precisions(machine) : settings.precisions;
  for (const std::string& precision : precisions)
    for (const bool recompute : settings.recomputes)
      for (const std::int64_t batch : micro_batches_of(settings, asked))
        for (const std::int64_t accumulate : settings.accumulates)
          for (const std::int64_t replicas : settings.replicas) {
            machine::Question question = asked;
            machine::Stated& stated = question.stated;
            const bool open = batch == 0;
            stated.precision = precision;
            stated.micro_batch = batch;
            if (!open || accumulate != 1) stated.accumulate = static_cast<int>(accumulate);
            if (!open || replicas != 1) stated.replicas = static_cast<int>(replicas);
            if (!open || recompute) stated.recompute = recompute;
            if (!open) stated.stages = 1;
            add_configurations(machine, question, graphs, points);
          }
}

void fill(SweepPoint& point, const Machine& machine, GraphsByBatch& graphs) {
  try {
    point.prediction = machine::predict(machine, graphs.at(point.settings.micro_batch), point.settings);
    point.prediction.operators.clear();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) return;
    point.refused = error.message();
  }
  point.done = true;
}

}  // namespace

std::vector<SweepPoint> sweep(const SweepSettings& settings) {
  std::vector<Machine> machines;
  for (const std::string& name : settings.machines) machines.push_back(machine::find_machine(name));
  const run::Model model(as_workload(settings.model));
  GraphsByBatch graphs(model, settings.trains);
  const ModelByLaw by_law(model, settings.trains);
  for (Machine& machine : machines) machine = by_law.on(std::move(machine));
  machine::Question asked = question_of(model, settings.trains);
  asked.stated.device_iterations = settings.device_iterations > 1 ? settings.device_iterations : 0;
  asked.stated.loaders = settings.loaders > 1 ? settings.loaders : 0;
  asked.stated.input_bytes = settings.input_bytes;
  require_cost_models(model, graphs.at(std::max<std::int64_t>(1, asked.fixed_batch)));
  std::vector<SweepPoint> points;
  std::vector<std::size_t> machine_of;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    add_points_of(machines[i], settings, asked, graphs, points);
    machine_of.resize(points.size(), i);
  }
  ThreadPool pool(settings.threads);
  Progress progress = Progress::passing("sweep", static_cast<double>(points.size()), "configurations");
  std::mutex mutex;
  double done = 0;
  pool.parallel_for(static_cast<std::int64_t>(points.size()), [&](std::int64_t item, int) {
    if (interrupted()) return;
    const auto i = static_cast<std::size_t>(item);
    fill(points[i], machines[machine_of[i]], graphs);
    const std::lock_guard lock(mutex);
    progress.update(++done, points[i].machine);
  });
  progress.finish();
  return points;
}

std::vector<std::int64_t> counts_from(const std::string& text, const std::string& option) {
  constexpr std::int64_t most = 1 << 20;
  const auto number = [&](const std::string& word) {
    const auto value = whole_number(word);
    if (!value || *value < 1 || *value > most)
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no number from 1 to {}", word, most),
                  option, "write 1,2,8 or doublings as 8..64");
    return *value;
  };
  std::vector<std::int64_t> counts;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dots = part.find("..");
    if (dots == std::string::npos) {
      counts.push_back(number(part));
      continue;
    }
    const std::int64_t last = number(part.substr(dots + 2));
    for (std::int64_t count = number(part.substr(0, dots)); count <= last; count *= 2)
      counts.push_back(count);
  }
  std::ranges::sort(counts);
  counts.erase(std::ranges::unique(counts).begin(), counts.end());
  if (counts.empty())
    throw Error(ErrorCode::invalid_argument, "has no number", option, "8..64 doubles upwards");
  return counts;
}

}  // namespace superstep::lab
