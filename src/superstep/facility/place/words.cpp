// What a placement says in the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"
#include "superstep/facility/place/place.h"

namespace superstep::facility {
namespace {

const Place& place_of(const Problem& problem, const Candidate& candidate, std::size_t task) {
  return problem.choices[task].choices[static_cast<std::size_t>(candidate.chosen[task])].place;
}

std::string spread_words(const Problem& problem, Wish wish, const Spread& spread) {
  if (!std::isfinite(spread.value)) return "not known";
  const std::string usual = amount_of(problem, wish, spread.value);
  if (spread.low == spread.high) return usual;
  return fmt::format("{} ({} to {}, 80 %)", usual, amount_of(problem, wish, spread.low),
                     amount_of(problem, wish, spread.high));
}

std::string tasks_table(const Placed& placed) {
  const Problem& problem = placed.problem;
  const Assessed& best = placed.best.front();
  TextTable table({"task", "on", "at", "once", "times", "how its time is known"});
  for (const int at : problem.workflow.order) {
    const auto t = static_cast<std::size_t>(at);
    const Place& place = place_of(problem, best.candidate, t);
    const Partition& partition = problem.facility.partitions[static_cast<std::size_t>(place.partition)];
    const TaskFigures& figures = best.usual.tasks[t];
    table.add_row({problem.workflow.tasks[t].name, where_of(problem, best.candidate, t),
                   problem.facility.sites[static_cast<std::size_t>(partition.site)].name,
                   format_seconds(place.seconds.value), format_count(figures.firings),
                   problem.choices[t].choices[static_cast<std::size_t>(best.candidate.chosen[t])].how});
  }
  return table.to_string();
}

std::string targets_table(const Placed& placed) {
  const Problem& problem = placed.problem;
  if (problem.workflow.targets.empty()) return {};
  TextTable table({"target", "of what", "at most", "expected", "in 80 % of draws", "met"});
  const Assessed& best = placed.best.front();
  for (std::size_t k = 0; k < problem.workflow.targets.size(); ++k) {
    const Target& target = problem.workflow.targets[k];
    const Spread& spread = best.targets[k];
    const bool known = std::isfinite(spread.value);
    table.add_row({target.name, words_of(problem.workflow, target),
                   amount_of(problem, target.wish, target.limit),
                   known ? amount_of(problem, target.wish, spread.value) : "not known",
                   known ? fmt::format("{} to {}", amount_of(problem, target.wish, spread.low),
                                       amount_of(problem, target.wish, spread.high))
                         : "",
                   fmt::format("{:.0f} %", 100 * spread.met)});
  }
  return table.to_string();
}

std::string others_table(const Placed& placed) {
  if (placed.best.size() < 2) return {};
  const Problem& problem = placed.problem;
  const bool priced = !problem.facility.currency.empty();
  std::vector<std::string> header{"placement", "end", "latency"};
  if (priced) header.push_back("cost");
  TextTable table(header);
  for (const Assessed& one : placed.best) {
    std::vector<std::string> words;
    for (std::size_t t = 0; t < problem.workflow.tasks.size(); ++t)
      words.push_back(problem.workflow.tasks[t].name + "=" + where_of(problem, one.candidate, t));
    if (words.size() > 6) words = {fmt::format("{} tasks", words.size())};
    std::vector<std::string> row{join(words, " "), amount_of(problem, Wish::end, one.end.value),
                                 amount_of(problem, Wish::latency, one.latency.value)};
    if (priced) row.push_back(amount_of(problem, Wish::cost, one.cost.value));
    table.add_row(row);
  }
  return "other placements, best first\n" + table.to_string();
}

std::string variants_table(const Placed& placed) {
  if (placed.variants.size() < 2) return {};
  const Problem& problem = placed.problem;
  const Target aim = target_of(problem.workflow, problem.aim);
  const bool priced = !problem.facility.currency.empty();
  std::vector<std::string> header{"what if", aim_names()[static_cast<std::size_t>(problem.aim)], "change",
                                  "end"};
  if (priced) header.push_back("cost");
  TextTable table(header);
  const double now = placed.variants.front().aim;
  for (const Variant& one : placed.variants) {
    std::vector<std::string> row{one.what, amount_of(problem, aim.wish, one.aim),
                                 fmt::format("{:+.1f} %", 100 * (one.aim / now - 1)),
                                 amount_of(problem, Wish::end, one.end)};
    if (priced) row.push_back(amount_of(problem, Wish::cost, one.cost));
    table.add_row(row);
  }
  return "what more of something would buy, in the usual course\n" + table.to_string();
}

std::string coupled_words(const Placed& placed) {
  const Problem& problem = placed.problem;
  if (problem.facility.sites.size() < 2) return {};
  const Target aim = target_of(problem.workflow, problem.aim);
  std::string text;
  for (const Coupled& one : placed.coupled) {
    if (!one.possible) {
      text += fmt::format("everything at {}: not possible: {}\n", one.site, one.why_not);
      continue;
    }
    text +=
        fmt::format("everything at {}: {} {}{}", one.site, aim_names()[static_cast<std::size_t>(problem.aim)],
                    amount_of(problem, aim.wish, one.best.score.value),
                    one.best.score.excess > 0 ? ", and targets are missed" : "");
    if (one.crossover > 0)
      text += fmt::format("; as good as the best one where links have {:.2g} of their rate", one.crossover);
    else if (sites_of(problem, placed.found.best.front().chosen).size() > 1)
      text += "; the best one is better however slow its links";
    text += "\n";
  }
  return text;
}

std::string search_words(const Placed& placed) {
  const SearchResult& found = placed.found;
  const Target aim = target_of(placed.problem.workflow, placed.problem.aim);
  std::string words =
      fmt::format("{} of {} placements simulated, ", format_count(static_cast<double>(found.simulated)),
                  format_count(found.placements));
  if (found.proven) return words + "the others cannot be better in their usual course\n";
  return words + fmt::format("no proof that this is the best one; none has a {} below {}\n",
                             aim_names()[static_cast<std::size_t>(placed.problem.aim)],
                             amount_of(placed.problem, aim.wish, found.bound.value));
}

}  // namespace

std::string amount_of(const Problem& problem, Wish wish, double value) {
  if (!std::isfinite(value)) return "not known";
  if (wish == Wish::cost)
    return problem.facility.currency.empty() ? "no prices"
                                             : fmt::format("{:.4g} {}", value, problem.facility.currency);
  if (wish == Wish::energy) return format_si(value, "J");
  return format_seconds(value);
}

std::string where_of(const Problem& problem, const Candidate& candidate, std::size_t task) {
  const Place& place = place_of(problem, candidate, task);
  const std::string& name = problem.facility.partitions[static_cast<std::size_t>(place.partition)].name;
  return place.devices > 1 ? fmt::format("{} x {}", name, place.devices) : name;
}

std::vector<std::string> what_binds(const Problem& problem, const Assessed& assessed) {
  const bool latency = problem.aim == Aim::latency;
  const Course& course =
      latency ? assessed.usual.tasks[static_cast<std::size_t>(task_of_latency(problem.workflow))].slowest
              : assessed.usual.last;
  struct Part {
    const char* words;
    double seconds;
  };
  std::vector<Part> parts{{"at work", course.computed},
                          {"on links", course.moved},
                          {"in queues", course.queued},
                          {"waiting for devices", course.waited},
                          {"waiting for other items", course.gathered}};
  if (!latency) parts.push_back({"until its data had come", course.born});
  std::ranges::stable_sort(parts, std::greater<>(), &Part::seconds);
  std::vector<std::string> words;
  double all = 0;
  for (const Part& part : parts) all += part.seconds;
  std::vector<std::string> shares;
  for (const Part& part : parts)
    if (part.seconds > 0.005 * all)
      shares.push_back(fmt::format("{} {}", format_seconds(part.seconds), part.words));
  words.push_back(
      fmt::format("{} spent {}", latency ? "the slowest item" : "the last item", join(shares, ", ")));
  for (std::size_t p = 0; p < assessed.usual.device_seconds.size(); ++p) {
    const Partition& partition = problem.facility.partitions[p];
    const double share =
        assessed.usual.device_seconds[p] / (partition.devices * std::max(assessed.usual.end, 1e-300));
    if (share > 0.7)
      words.push_back(fmt::format("{} is at work {:.0f} % of the time", partition.name, 100 * share));
  }
  for (std::size_t l = 0; l < problem.facility.links.size(); ++l)
    for (const auto& way : assessed.usual.link_busy)
      if (way[l] > 0.7 * assessed.usual.end)
        words.push_back(fmt::format("{} carries data {:.0f} % of the time", problem.facility.links[l].name,
                                    100 * way[l] / assessed.usual.end));
  return words;
}

std::string text_of(const Placed& placed) {
  const Problem& problem = placed.problem;
  const Assessed& best = placed.best.front();
  std::string text = fmt::format("{} on {}, chosen for {}: simulated, with stated and predicted times\n{}",
                                 problem.workflow.name, problem.facility.name,
                                 aim_names()[static_cast<std::size_t>(problem.aim)], tasks_table(placed));
  text +=
      fmt::format("end      {}\nlatency  {} to {}\n", spread_words(problem, Wish::end, best.end),
                  spread_words(problem, Wish::latency, best.latency),
                  problem.workflow.tasks[static_cast<std::size_t>(task_of_latency(problem.workflow))].name);
  if (!problem.facility.currency.empty())
    text += fmt::format("cost     {}\n", spread_words(problem, Wish::cost, best.cost));
  text += fmt::format("energy   {}\n", spread_words(problem, Wish::energy, best.energy));
  text += targets_table(placed);
  for (const std::string& words : what_binds(problem, best)) text += words + "\n";
  text += search_words(placed) + others_table(placed) + variants_table(placed) + coupled_words(placed);
  return text;
}

std::vector<Metric> metrics_of(const Placed& placed) {
  const Assessed& best = placed.best.front();
  std::vector<Metric> metrics;
  const auto add = [&](const char* name, const Spread& spread, const std::string& unit) {
    if (!std::isfinite(spread.value)) return;
    metrics.push_back({.name = name, .value = spread.value, .unit = unit, .how = How::predicted});
    metrics.back().low = spread.low;
    metrics.back().high = spread.high;
  };
  add("end_seconds", best.end, "s");
  add("latency_seconds", best.latency, "s");
  if (!placed.problem.facility.currency.empty()) add("cost", best.cost, placed.problem.facility.currency);
  add("energy_joules", best.energy, "J");
  return metrics;
}

nlohmann::json config_of(const Placed& placed) {
  const Problem& problem = placed.problem;
  nlohmann::json config{{"workflow", problem.workflow.name},
                        {"facility", problem.facility.name},
                        {"for", aim_names()[static_cast<std::size_t>(problem.aim)]},
                        {"draws", placed.best.front().draws},
                        {"placements", placed.found.placements},
                        {"simulated", placed.found.simulated},
                        {"proven", placed.found.proven}};
  for (std::size_t t = 0; t < problem.workflow.tasks.size(); ++t) {
    const Candidate& best = placed.best.front().candidate;
    const Choice& choice = problem.choices[t].choices[static_cast<std::size_t>(best.chosen[t])];
    config["tasks"][problem.workflow.tasks[t].name] = {
        {"partition", problem.facility.partitions[static_cast<std::size_t>(choice.place.partition)].name},
        {"devices", choice.place.devices},
        {"seconds", choice.place.seconds.value},
        {"low", choice.place.seconds.low},
        {"high", choice.place.seconds.high},
        {"how", choice.how}};
  }
  for (std::size_t k = 0; k < problem.workflow.targets.size(); ++k)
    config["targets"][problem.workflow.targets[k].name] = {{"limit", problem.workflow.targets[k].limit},
                                                           {"median", placed.best.front().targets[k].value},
                                                           {"met", placed.best.front().targets[k].met}};
  return config;
}

}  // namespace superstep::facility
