#include "superstep/facility/place/assess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "superstep/base/statistics.h"
#include "superstep/base/thread_pool.h"

namespace superstep::facility {
namespace {

// What is kept of a draw.
struct Figures {
  double end = 0, latency = 0, cost = 0, energy = 0;
  std::vector<double> targets;
};

Figures figures_of(const Problem& problem, const Simulated& simulated) {
  Figures figures{.end = simulated.end,
                  .latency = figure_of(target_of(problem.workflow, Aim::latency), simulated),
                  .cost = simulated.cost,
                  .energy = figure_of(target_of(problem.workflow, Aim::energy), simulated)};
  for (const Target& target : problem.workflow.targets)
    figures.targets.push_back(figure_of(target, simulated));
  return figures;
}

template <class Take>
Spread spread_of(const Figures& usual, const std::vector<Figures>& drawn, double limit, Take take) {
  std::vector<double> values;
  std::size_t met = 0;
  for (const Figures& one : drawn) {
    const double value = take(one);
    if (std::isfinite(value)) values.push_back(value);  // else no item came in this draw: it is not met
    met += std::isfinite(value) && value <= limit;
  }
  const std::size_t all = std::max<std::size_t>(drawn.size(), 1);
  if (drawn.empty()) {
    values.push_back(take(usual));
    met = values.back() <= limit;
  }
  return {.value = quantile(values, 0.5),
          .low = quantile(values, 0.1),
          .high = quantile(values, 0.9),
          .met = static_cast<double>(met) / static_cast<double>(all)};
}

std::set<std::size_t> links_used(const Assessed& assessed) {
  std::set<std::size_t> used;
  for (const auto& way : assessed.usual.link_busy)
    for (std::size_t l = 0; l < way.size(); ++l)
      if (way[l] > 0) used.insert(l);
  return used;
}

Variant variant(const Problem& problem, std::string what, const Plan& plan) {
  const Simulated simulated = simulate_whole_and_head(plan, {.most_items = SearchLimits{}.most_items * 4});
  return {std::move(what), figure_of(target_of(problem.workflow, problem.aim), simulated), simulated.end,
          simulated.cost};
}

// The links of a plan, all slower by a factor.
Score with_links(const Problem& problem, const Candidate& candidate, double factor,
                 const SearchLimits& limits) {
  Plan plan = problem.plan_of(candidate.chosen);
  plan.link_factors.assign(problem.facility.links.size(), factor);
  return score_of(problem.workflow, problem.aim,
                  simulate_whole_and_head(plan, {.most_items = limits.most_items}));
}

// Bisected on a logarithmic scale, to 3 %.
double crossover_of(const Problem& problem, const Candidate& split, const Candidate& coupled,
                    const SearchLimits& limits) {
  const auto split_is_better = [&](double factor) {
    return with_links(problem, split, factor, limits) < with_links(problem, coupled, factor, limits);
  };
  double slow = 1.0 / 4096, fast = 1;  // three orders: from a beamline's link to a telephone's
  if (split_is_better(slow)) return 0;
  while (fast / slow > 1.03) {
    const double middle = std::sqrt(slow * fast);
    (split_is_better(middle) ? fast : slow) = middle;
  }
  return fast;
}

}  // namespace

Assessed assess(const Problem& problem, const Candidate& candidate, const AssessSettings& settings) {
  Assessed assessed{.candidate = candidate, .draws = settings.draws};
  const Plan plan = problem.plan_of(candidate.chosen);
  assessed.usual = simulate_whole_and_head(plan, {.seed = settings.seed, .timeline = settings.timeline});
  std::vector<Figures> drawn(static_cast<std::size_t>(settings.draws));
  ThreadPool pool(std::max(1, std::min(settings.threads, settings.draws)));
  pool.parallel_for(settings.draws, [&](std::int64_t draw, int) {
    drawn[static_cast<std::size_t>(draw)] =
        figures_of(problem, simulate_whole_and_head(plan, {.seed = settings.seed,
                                                           .draw = static_cast<std::uint32_t>(draw + 1),
                                                           .most_items = settings.most_items}));
  });
  const Figures usual = figures_of(problem, assessed.usual);
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  assessed.end = spread_of(usual, drawn, no_limit, [](const Figures& f) { return f.end; });
  assessed.latency = spread_of(usual, drawn, no_limit, [](const Figures& f) { return f.latency; });
  assessed.cost = spread_of(usual, drawn, no_limit, [](const Figures& f) { return f.cost; });
  assessed.energy = spread_of(usual, drawn, no_limit, [](const Figures& f) { return f.energy; });
  for (std::size_t k = 0; k < problem.workflow.targets.size(); ++k)
    assessed.targets.push_back(spread_of(usual, drawn, problem.workflow.targets[k].limit,
                                         [k](const Figures& f) { return f.targets[k]; }));
  std::vector<double> medians;
  for (const Spread& spread : assessed.targets) medians.push_back(spread.value);
  const Spread* const of_aims[] = {&assessed.end, &assessed.latency, &assessed.cost, &assessed.energy};
  assessed.score = score_of(problem.workflow, medians, of_aims[static_cast<std::size_t>(problem.aim)]->value);
  return assessed;
}

std::vector<Variant> variants_of(const Problem& problem, const Assessed& assessed) {
  std::vector<Variant> variants;
  const Plan usual = problem.plan_of(assessed.candidate.chosen);
  const Variant now = variant(problem, "as it is", usual);
  for (const std::size_t link : links_used(assessed)) {
    Plan plan = usual;
    plan.link_factors.assign(problem.facility.links.size(), 1);
    plan.link_factors[link] = 2;
    variants.push_back(
        variant(problem, fmt::format("{} twice as fast", problem.facility.links[link].name), plan));
  }
  bool queues = false;
  for (std::size_t p = 0; p < problem.facility.partitions.size(); ++p) {
    if (assessed.usual.device_seconds[p] == 0) continue;
    queues |= !problem.facility.partitions[p].wait.none();
    Plan plan = usual;
    plan.more_devices.assign(problem.facility.partitions.size(), 1);
    plan.more_devices[p] = 2;
    variants.push_back(variant(
        problem, fmt::format("{} with twice the devices", problem.facility.partitions[p].name), plan));
  }
  if (queues) {
    Plan plan = usual;
    plan.no_queues = true;
    variants.push_back(variant(problem, "no wait in any queue", plan));
  }
  std::ranges::stable_sort(variants, {}, &Variant::aim);
  variants.insert(variants.begin(), now);
  return variants;
}

std::vector<int> sites_of(const Problem& problem, const std::vector<int>& chosen) {
  std::set<int> sites;
  for (std::size_t t = 0; t < chosen.size(); ++t) {
    const Place& place = problem.choices[t].choices[static_cast<std::size_t>(chosen[t])].place;
    sites.insert(problem.facility.partitions[static_cast<std::size_t>(place.partition)].site);
  }
  return {sites.begin(), sites.end()};
}

std::vector<Coupled> coupled_of(const Problem& problem, const Candidate& best, const SearchLimits& limits) {
  std::vector<Coupled> all;
  const std::vector<int> sites = sites_of(problem, best.chosen);
  for (std::size_t s = 0; s < problem.facility.sites.size(); ++s) {
    Coupled coupled{.site = problem.facility.sites[s].name};
    for (std::size_t t = 0; t < problem.choices.size() && coupled.why_not.empty(); ++t) {
      const bool here = std::ranges::any_of(problem.choices[t].choices, [&](const Choice& choice) {
        return problem.facility.partitions[static_cast<std::size_t>(choice.place.partition)].site ==
               static_cast<int>(s);
      });
      if (!here) coupled.why_not = fmt::format("{} has no place there", problem.workflow.tasks[t].name);
    }
    if (coupled.why_not.empty()) {
      SearchLimits here = limits;
      here.only_site = static_cast<int>(s);
      here.kept = 1;
      const SearchResult found = search(problem, here);
      if (found.best.empty()) {
        coupled.why_not = "no link brings its data there, or its services hold too many devices";
      } else {
        coupled.possible = true;
        coupled.best = found.best.front();
        if (sites.size() > 1 && best.score < coupled.best.score)
          coupled.crossover = crossover_of(problem, best, coupled.best, limits);
      }
    }
    all.push_back(std::move(coupled));
  }
  return all;
}

}  // namespace superstep::facility
