#include "superstep/facility/place/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::facility {
namespace {

// --fix TASK=PARTITION: its other choices go.
void fix(Problem& problem, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(ErrorCode::invalid_argument, "must be TASK=PARTITION", "--fix " + word);
  const std::string task = word.substr(0, equals), where = word.substr(equals + 1);
  std::vector<std::string> names;
  for (std::size_t t = 0; t < problem.workflow.tasks.size(); ++t) {
    names.push_back(problem.workflow.tasks[t].name);
    if (names.back() != task) continue;
    auto& choices = problem.choices[t].choices;
    const auto elsewhere = [&](const Choice& choice) {
      return problem.facility.partitions[static_cast<std::size_t>(choice.place.partition)].name != where;
    };
    std::vector<std::string> there;
    for (const Choice& choice : choices)
      there.push_back(problem.facility.partitions[static_cast<std::size_t>(choice.place.partition)].name);
    std::erase_if(choices, elsewhere);
    if (choices.empty())
      throw Error(ErrorCode::invalid_argument, fmt::format("{} cannot be on '{}'", task, where),
                  "--fix " + word, unknown_name_hint(where, there));
    return;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no task", task), "--fix " + word,
              unknown_name_hint(task, names));
}

Aim aim_of(const Workflow& workflow) {
  if (workflow.targets.empty()) return Aim::end;
  switch (workflow.targets.front().wish) {
    case Wish::latency:
    case Wish::age: return Aim::latency;
    case Wish::end: return Aim::end;
    case Wish::cost: return Aim::cost;
    case Wish::energy: return Aim::energy;
  }
  return Aim::end;
}

void require_figures(const Problem& problem) {
  const bool costs = problem.aim == Aim::cost ||
                     std::ranges::any_of(problem.workflow.targets,
                                         [](const Target& target) { return target.wish == Wish::cost; });
  if (costs && problem.facility.currency.empty())
    throw Error(ErrorCode::invalid_argument, "costs are counted from prices, and no partition has one",
                problem.facility.file,
                "currency = \"EUR\", and price = ... of a device-hour in [partition.NAME]");
}

// Why nothing can be placed: each task has a place, but not all of them together.
[[noreturn]] void refuse(const Problem& problem) {
  for (std::size_t t = 0; t < problem.choices.size(); ++t) {
    for (const Input& input : problem.workflow.tasks[t].inputs) {
      if (!input.of_source) continue;
      const auto s = static_cast<std::size_t>(input.from);
      const bool reached = std::ranges::any_of(problem.choices[t].choices, [&](const Choice& choice) {
        return problem.facility.route(
            problem.source_sites[s],
            problem.facility.partitions[static_cast<std::size_t>(choice.place.partition)].site);
      });
      if (!reached)
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("no link brings {} from {} to a place of {}", problem.workflow.sources[s].name,
                        problem.workflow.sources[s].at, problem.workflow.tasks[t].name),
            problem.facility.file);
    }
  }
  std::vector<int> first(problem.choices.size(), 0);
  const std::string conflict = conflict_of(problem, first);
  throw Error(ErrorCode::invalid_argument,
              "the tasks have no places together: " +
                  (conflict.empty() ? std::string("no link joins them") : conflict),
              problem.facility.file);
}

// The candidates of the search, which has compared usual courses, by the medians of some draws, and the first
// of them by all draws.
std::vector<Assessed> looked_at_closely(const Problem& problem, const SearchResult& found,
                                        const PlaceSettings& settings) {
  constexpr int few_draws = 20;  // a median of them is near enough to leave out what is far behind (chosen)
  AssessSettings few = settings.assess;
  few.draws = std::min(few.draws, few_draws);
  few.timeline = false;
  const auto better = [](const Assessed& a, const Assessed& b) { return a.score < b.score; };
  std::vector<Assessed> all;
  for (const Candidate& candidate : found.best) all.push_back(assess(problem, candidate, few));
  std::ranges::stable_sort(all, better);
  if (all.size() > settings.shown) all.resize(settings.shown);
  for (Assessed& one : all) one = assess(problem, one.candidate, settings.assess);
  std::ranges::stable_sort(all, better);
  return all;
}

}  // namespace

bool Placed::meets_targets() const { return best.front().score.excess == 0; }

Placed place(const PlaceSettings& settings) {
  Placed placed;
  Problem& problem = placed.problem;
  problem.workflow = read_workflow(settings.workflow);
  problem.facility = read_facility(settings.facility);
  problem.aim = settings.aim_said ? settings.aim : aim_of(problem.workflow);
  require_figures(problem);
  problem.source_sites = sites_of_sources(problem.workflow, problem.facility);
  problem.choices = choices_of(problem.workflow, problem.facility, settings.timing);
  problem.power = power_of(problem.facility);
  for (const std::string& word : settings.fixed) fix(problem, word);
  if (settings.timing.progress) settings.timing.progress("searching");
  placed.found = search(problem, settings.limits);
  if (placed.found.best.empty()) refuse(problem);
  placed.best = looked_at_closely(problem, placed.found, settings);
  placed.variants = variants_of(problem, placed.best.front());
  placed.coupled = coupled_of(problem, placed.best.front().candidate, settings.limits);
  return placed;
}

}  // namespace superstep::facility
