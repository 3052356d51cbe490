#include "superstep/facility/place/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/facility/place/bound.h"

namespace superstep::facility {
namespace {

class Search {
 public:
  Search(const Problem& problem, const SearchLimits& limits)
      : problem_(problem),
        limits_(limits),
        bounds_(problem.workflow, problem.facility, problem.choices, problem.source_sites, problem.power,
                problem.aim) {
    const std::vector<int> any(problem.workflow.tasks.size(), -1);
    result_.bound = bounds_.of(any);
    for (std::size_t t = 0; t < any.size(); ++t) {
      allowed_.emplace_back();
      for (std::size_t c = 0; c < problem.choices[t].choices.size(); ++c) {
        const Place& place = problem.choices[t].choices[c].place;
        const int site = problem.facility.partitions[static_cast<std::size_t>(place.partition)].site;
        if (limits.only_site < 0 || site == limits.only_site) allowed_[t].push_back(static_cast<int>(c));
      }
      result_.placements *= static_cast<double>(allowed_[t].size());
    }
  }

  SearchResult run() {
    if (result_.placements == 0) return result_;
    // Branches of so many placements are gone through in the time of some hundred simulations.
    constexpr double most_branched = 1e6;
    std::vector<int> chosen(allowed_.size(), -1);
    if (result_.placements <= most_branched) {
      branch(chosen, 0);
      result_.proven = !full_;
    }
    if (result_.best.empty() || full_ || result_.placements > most_branched) improve();
    return result_;
  }

 private:
  bool worse_than_best(const Score& bound) const {
    return !result_.best.empty() && !(bound < result_.best.front().score);
  }

  // Depth first, in the order of the tasks, the choice with the lowest bound first.
  void branch(std::vector<int>& chosen, std::size_t depth) {
    if (full_) return;
    if (depth == chosen.size()) return consider(chosen);
    const auto t = static_cast<std::size_t>(problem_.workflow.order[depth]);
    for (const auto& [bound, choice] : by_bound(chosen, t)) {
      if (worse_than_best(bound)) break;
      chosen[t] = choice;
      branch(chosen, depth + 1);
    }
    chosen[t] = -1;
  }

  std::vector<std::pair<Score, int>> by_bound(std::vector<int> chosen, std::size_t t) const {
    std::vector<std::pair<Score, int>> order;
    for (const int choice : allowed_[t]) {
      chosen[t] = -1;
      if (!bounds_.reachable(static_cast<int>(t), choice, chosen)) continue;
      chosen[t] = choice;
      order.emplace_back(bounds_.of(chosen), choice);
    }
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first < b.first; });
    return order;
  }

  // Simulates it unless that was done before; false: it cannot be.
  void consider(const std::vector<int>& chosen) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while searching");
    if (result_.simulated >= limits_.most_simulated) {
      full_ = true;
      return;
    }
    if (known_.contains(chosen) || !conflict_of(problem_, chosen).empty()) return;
    const Plan plan = problem_.plan_of(chosen);
    const Score score = score_of(problem_.workflow, problem_.aim,
                                 simulate_whole_and_head(plan, {.most_items = limits_.most_items}));
    ++result_.simulated;
    known_[chosen] = score;
    keep({chosen, score});
  }

  void keep(Candidate candidate) {
    auto& best = result_.best;
    const auto place = std::ranges::upper_bound(
        best, candidate, [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
    if (place == best.end() && best.size() >= limits_.kept) return;
    best.insert(place, std::move(candidate));
    if (best.size() > limits_.kept) best.pop_back();
  }

  // From a placement that goes task by task to the lowest bound: one task elsewhere at a time, as long as
  // that gets better.
  void improve() {
    full_ = false;
    const std::size_t before = result_.simulated;
    std::vector<int> chosen(allowed_.size(), -1);
    for (const int at : problem_.workflow.order) {
      const auto t = static_cast<std::size_t>(at);
      const auto order = by_bound(chosen, t);
      if (order.empty()) return;
      chosen[t] = order.front().second;
      for (const auto& [bound, choice] : order) {
        std::vector<int> tried = chosen;
        tried[t] = choice;
        if (!conflict_of(problem_, tried).empty()) continue;
        chosen[t] = choice;
        break;
      }
    }
    // As many again as branching had.
    const SearchLimits given = limits_;
    limits_.most_simulated = before + given.most_simulated;
    consider(chosen);
    for (bool better = true; better && !full_ && !result_.best.empty();) {
      better = false;
      for (const int at : problem_.workflow.order) better |= move_one(static_cast<std::size_t>(at));
    }
    limits_ = given;
  }

  bool move_one(std::size_t t) {
    const Candidate from = result_.best.front();
    for (const int choice : allowed_[t]) {
      std::vector<int> tried = from.chosen;
      if (tried[t] == choice) continue;
      tried[t] = choice;
      if (!all_reachable(tried) || worse_than_best(bounds_.of(tried))) continue;
      consider(tried);
      if (full_) return false;
    }
    return result_.best.front().score < from.score;
  }

  bool all_reachable(const std::vector<int>& chosen) const {
    for (std::size_t t = 0; t < chosen.size(); ++t)
      if (!bounds_.reachable(static_cast<int>(t), chosen[t], chosen)) return false;
    return true;
  }

  const Problem& problem_;
  SearchLimits limits_;
  Bounds bounds_;
  std::vector<std::vector<int>> allowed_;
  std::map<std::vector<int>, Score> known_;
  SearchResult result_;
  bool full_ = false;
};

}  // namespace

Plan Problem::plan_of(const std::vector<int>& chosen) const {
  Plan plan{.facility = &facility, .workflow = &workflow, .source_sites = source_sites, .power = power};
  for (std::size_t t = 0; t < chosen.size(); ++t)
    plan.places.push_back(choices[t].choices[static_cast<std::size_t>(chosen[t])].place);
  return plan;
}

SearchResult search(const Problem& problem, const SearchLimits& limits) {
  return Search(problem, limits).run();
}

std::string conflict_of(const Problem& problem, const std::vector<int>& chosen) {
  std::vector<std::int64_t> held(problem.facility.partitions.size(), 0);
  const auto place_of = [&](std::size_t t) -> const Place& {
    return problem.choices[t].choices[static_cast<std::size_t>(chosen[t])].place;
  };
  for (std::size_t t = 0; t < chosen.size(); ++t) {
    if (chosen[t] < 0) continue;
    const auto p = static_cast<std::size_t>(place_of(t).partition);
    const Task& task = problem.workflow.tasks[t];
    if (!task.job && !problem.facility.partitions[p].queue.empty())
      held[p] += std::int64_t{std::max(1, task.copies)} * place_of(t).devices;
  }
  for (std::size_t t = 0; t < chosen.size(); ++t) {
    if (chosen[t] < 0) continue;
    const auto p = static_cast<std::size_t>(place_of(t).partition);
    const Partition& partition = problem.facility.partitions[p];
    const bool holds = !problem.workflow.tasks[t].job && !partition.queue.empty();
    if (held[p] + (holds ? 0 : place_of(t).devices) > partition.devices)
      return fmt::format("{}: its services hold {} of {} devices, and {} wants {}", partition.name, held[p],
                         partition.devices, problem.workflow.tasks[t].name, place_of(t).devices);
  }
  return {};
}

}  // namespace superstep::facility
