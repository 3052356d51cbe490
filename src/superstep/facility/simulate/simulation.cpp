#include "superstep/facility/simulate/simulation.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "superstep/base/statistics.h"
#include "superstep/facility/simulate/engine.h"

namespace superstep::facility {
namespace {

// It and all before it work on items as they come.
bool item_by_item(const Workflow& workflow, std::size_t t) {
  const Task& task = workflow.tasks[t];
  return task.trigger == Trigger::items && std::ranges::all_of(task.inputs, [&](const Input& input) {
           return input.of_source || item_by_item(workflow, static_cast<std::size_t>(input.from));
         });
}

// Whether times grow from the third tenth of the items to the last: chosen to be past the start, and by more
// than queues that come and go make of it.
bool falls_behind(const std::vector<float>& latencies) {
  const std::size_t tenth = latencies.size() / 10;
  if (tenth == 0) return false;
  const auto sum_from = [&](std::size_t first) {
    return std::accumulate(latencies.begin() + static_cast<std::ptrdiff_t>(first),
                           latencies.begin() + static_cast<std::ptrdiff_t>(first + tenth), 0.0);
  };
  return sum_from(latencies.size() - tenth) > 1.5 * sum_from(2 * tenth);
}

double percentile(std::vector<float> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const std::vector<double> sorted(values.begin(), values.end());
  return nearest_rank(sorted, share);
}

}  // namespace

Simulated simulate(const Plan& plan, const SimulationSettings& settings) {
  return Engine(plan, settings).run();
}

Simulated simulate_whole_and_head(const Plan& plan, const SimulationSettings& settings) {
  Simulated whole = simulate(plan, settings);
  const bool grouped = std::ranges::any_of(
      plan.workflow->sources, [&](const Source& source) { return source.count > settings.most_items; });
  if (!grouped) return whole;
  SimulationSettings of_head = settings;
  of_head.head = true;
  of_head.timeline = false;
  Simulated head = simulate(plan, of_head);
  for (const int at : plan.workflow->order) {
    const auto t = static_cast<std::size_t>(at);
    if (!item_by_item(*plan.workflow, t) || falls_behind(whole.tasks[t].latencies)) continue;
    whole.tasks[t].latencies = std::move(head.tasks[t].latencies);
    whole.tasks[t].slowest = head.tasks[t].slowest;
  }
  return whole;
}

double figure_of(const Target& target, const Simulated& simulated) {
  switch (target.wish) {
    case Wish::latency:
      return percentile(simulated.tasks[static_cast<std::size_t>(target.task)].latencies, target.share);
    case Wish::age:
      return percentile(simulated.tasks[static_cast<std::size_t>(target.task)].ages, target.share);
    case Wish::end: return simulated.end;
    case Wish::cost: return simulated.cost;
    case Wish::energy:
      return simulated.energy_known ? simulated.energy : std::numeric_limits<double>::quiet_NaN();
  }
  return 0;
}

}  // namespace superstep::facility
