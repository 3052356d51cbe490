#include "superstep/facility/place/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace superstep::facility {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Firings that a task makes at least, by the counts of the sources: of a period none is sure but one.
std::vector<double> least_firings(const Workflow& workflow) {
  std::vector<double> firings(workflow.tasks.size(), 1);
  for (const int t : workflow.order) {
    const Task& task = workflow.tasks[static_cast<std::size_t>(t)];
    if (task.trigger != Trigger::items) continue;
    double least = infinity;
    for (const Input& input : task.inputs) {
      const auto from = static_cast<std::size_t>(input.from);
      const double items =
          input.of_source ? static_cast<double>(workflow.sources[from].count) : firings[from];
      least = std::min(least, std::floor(items / input.every));
    }
    firings[static_cast<std::size_t>(t)] = std::max(1.0, least);
  }
  return firings;
}

}  // namespace

Bounds::Bounds(const Workflow& workflow, const Facility& facility, const std::vector<TaskChoices>& choices,
               const std::vector<int>& source_sites, const std::vector<double>& power, Aim aim)
    : workflow_(workflow),
      facility_(facility),
      choices_(choices),
      source_sites_(source_sites),
      power_(power),
      aim_(aim),
      firings_(least_firings(workflow)) {
  const std::size_t sites = facility.sites.size();
  one_byte_.assign(sites, std::vector<double>(sites, 0));
  latency_ = one_byte_;
  for (std::size_t a = 0; a < sites; ++a)
    for (std::size_t b = 0; b < sites; ++b) {
      const auto* route = facility.route(static_cast<int>(a), static_cast<int>(b));
      if (!route) one_byte_[a][b] = infinity;
      if (!route) continue;
      for (const Facility::Step& step : *route) {
        const Link& link = facility.links[static_cast<std::size_t>(step.link)];
        one_byte_[a][b] += 1 / (link.rate.value * (1 - link.others));
        latency_[a][b] += link.latency;
      }
    }
}

double Bounds::moved(int from_site, int to_site, double bytes) const {
  const auto a = static_cast<std::size_t>(from_site), b = static_cast<std::size_t>(to_site);
  if (!std::isfinite(one_byte_[a][b])) return infinity;
  return one_byte_[a][b] * bytes + latency_[a][b];
}

int Bounds::site_of(std::size_t t, int choice) const {
  const Place& place = choices_[t].choices[static_cast<std::size_t>(choice)].place;
  return facility_.partitions[static_cast<std::size_t>(place.partition)].site;
}

double Bounds::least_move(const Input& input, int to_site, const std::vector<int>& chosen) const {
  const auto from = static_cast<std::size_t>(input.from);
  if (input.of_source) return moved(source_sites_[from], to_site, workflow_.sources[from].bytes);
  const double bytes = workflow_.tasks[from].bytes;
  if (chosen[from] >= 0) return moved(site_of(from, chosen[from]), to_site, bytes);
  double least = infinity;
  for (std::size_t c = 0; c < choices_[from].choices.size(); ++c)
    least = std::min(least, moved(site_of(from, static_cast<int>(c)), to_site, bytes));
  return least;
}

bool Bounds::reachable(int task, int choice, const std::vector<int>& chosen) const {
  const auto t = static_cast<std::size_t>(task);
  const int site = site_of(t, choice);
  for (const Input& input : workflow_.tasks[t].inputs)
    if (!std::isfinite(least_move(input, site, chosen))) return false;
  for (const int used : workflow_.tasks[t].uses)
    if (!std::isfinite(least_move({.from = used}, site, chosen))) return false;
  return true;
}

Bounds::Times Bounds::best_of_task(std::size_t t, const std::vector<int>& chosen,
                                   const std::vector<Times>& before) const {
  const Task& task = workflow_.tasks[t];
  Times best{.end = infinity, .latency = infinity};
  for (std::size_t c = 0; c < choices_[t].choices.size(); ++c) {
    if (chosen[t] >= 0 && static_cast<std::size_t>(chosen[t]) != c) continue;
    const Place& place = choices_[t].choices[c].place;
    const Partition& partition = facility_.partitions[static_cast<std::size_t>(place.partition)];
    const double once = (task.job ? partition.wait.usual() + partition.start.value : 0) + place.seconds.value;
    // A service that waits in a queue starts nothing before it is through.
    double ready =
        task.job ? 0 : partition.wait.usual() + (partition.queue.empty() ? 0 : partition.start.value);
    double latency = 0, first = infinity;
    for (const Input& input : task.inputs) {
      const double move = least_move(input, partition.site, chosen);
      const auto from = static_cast<std::size_t>(input.from);
      const Source* source = input.of_source ? &workflow_.sources[from] : nullptr;
      const double last = !source             ? before[from].end
                          : source->rate == 0 ? 0
                                              : (static_cast<double>(source->count) - 1) / source->rate;
      ready = std::max(ready, last + move);
      first = std::min(first, (source ? 0 : before[from].latency) + move);
    }
    latency = std::isfinite(first) ? first : infinity;
    const int at_once = std::max(
        1, std::min(task.copies > 0 ? task.copies : partition.devices, partition.devices / place.devices));
    const double work = firings_[t] * place.seconds.value / at_once;
    best.end = std::min(best.end, std::max(ready + once, work));
    best.latency = std::min(best.latency, latency + once);
  }
  return best;
}

Score Bounds::of(const std::vector<int>& chosen) const {
  std::vector<Times> times(workflow_.tasks.size());
  double end = 0, cost = 0, energy = 0;
  for (const int at : workflow_.order) {
    const auto t = static_cast<std::size_t>(at);
    times[t] = best_of_task(t, chosen, times);
    end = std::max(end, times[t].end);
    double least_cost = infinity, least_energy = infinity;
    for (std::size_t c = 0; c < choices_[t].choices.size(); ++c) {
      if (chosen[t] >= 0 && static_cast<std::size_t>(chosen[t]) != c) continue;
      const Place& place = choices_[t].choices[c].place;
      const auto p = static_cast<std::size_t>(place.partition);
      const double seconds = firings_[t] * place.seconds.value * place.devices;
      least_cost = std::min(least_cost, seconds / 3600 * facility_.partitions[p].price);
      least_energy = std::min(least_energy, seconds * power_[p]);
    }
    cost += least_cost;
    energy += least_energy;
  }
  const auto figure = [&](const Target& target) {
    switch (target.wish) {
      case Wish::latency: return times[static_cast<std::size_t>(target.task)].latency;
      case Wish::age: return 0.0;
      case Wish::end: return end;
      case Wish::cost: return cost;
      case Wish::energy: return energy;
    }
    return 0.0;
  };
  std::vector<double> figures;
  for (const Target& target : workflow_.targets) figures.push_back(figure(target));
  return score_of(workflow_, figures, figure(target_of(workflow_, aim_)));
}

}  // namespace superstep::facility
