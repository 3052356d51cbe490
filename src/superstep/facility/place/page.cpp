// The page of a placement.
#include "superstep/page/page.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/facility/place/place.h"
#include "superstep/facility/place/timeline.h"

namespace superstep::facility {
namespace {

using Rows = std::vector<std::vector<std::string>>;

void add_answer(page::Page& page, const Placed& placed) {
  const Problem& problem = placed.problem;
  const Assessed& best = placed.best.front();
  Rows rows;
  for (const int at : problem.workflow.order) {
    const auto t = static_cast<std::size_t>(at);
    const Choice& choice = problem.choices[t].choices[static_cast<std::size_t>(best.candidate.chosen[t])];
    const Partition& partition =
        problem.facility.partitions[static_cast<std::size_t>(choice.place.partition)];
    rows.push_back({problem.workflow.tasks[t].name, where_of(problem, best.candidate, t),
                    problem.facility.sites[static_cast<std::size_t>(partition.site)].name,
                    format_seconds(choice.place.seconds.value), format_count(best.usual.tasks[t].firings),
                    choice.how});
  }
  page.heading("Where each task goes");
  page.table({"task", "on", "at", "once", "times", "how its time is known"}, rows);
}

void add_figures(page::Page& page, const Placed& placed) {
  const Problem& problem = placed.problem;
  const Assessed& best = placed.best.front();
  Rows rows;
  const auto add = [&](const std::string& name, Wish wish, const Spread& spread) {
    rows.push_back({name, amount_of(problem, wish, spread.value),
                    fmt::format("{} to {}", amount_of(problem, wish, spread.low),
                                amount_of(problem, wish, spread.high))});
  };
  add("end", Wish::end, best.end);
  add("latency to " +
          problem.workflow.tasks[static_cast<std::size_t>(task_of_latency(problem.workflow))].name,
      Wish::latency, best.latency);
  if (!problem.facility.currency.empty()) add("cost", Wish::cost, best.cost);
  add("energy", Wish::energy, best.energy);
  page.heading("What to expect");
  page.paragraph(
      fmt::format("Simulated, with stated and predicted times: the median and the interval that holds 80 % "
                  "of {} draws of all "
                  "that is uncertain. The course below is the usual one: times at their values, queues at "
                  "their medians, no "
                  "failure.",
                  best.draws));
  page.table({"figure", "median", "80 % of draws"}, rows);
  if (problem.workflow.targets.empty()) return;
  Rows targets;
  for (std::size_t k = 0; k < problem.workflow.targets.size(); ++k) {
    const Target& target = problem.workflow.targets[k];
    targets.push_back({target.name, words_of(problem.workflow, target),
                       amount_of(problem, target.wish, target.limit),
                       amount_of(problem, target.wish, best.targets[k].value),
                       fmt::format("{:.0f} %", 100 * best.targets[k].met)});
  }
  page.table({"target", "of what", "at most", "expected", "met in so many draws"}, targets);
}

void add_variants(page::Page& page, const Placed& placed) {
  const Problem& problem = placed.problem;
  const Target aim = target_of(problem.workflow, problem.aim);
  page.heading("What binds, and what more would buy");
  for (const std::string& words : what_binds(problem, placed.best.front()))
    page.paragraph(static_cast<char>(std::toupper(static_cast<unsigned char>(words.front()))) +
                   words.substr(1) + ".");
  Rows rows;
  for (const Variant& one : placed.variants)
    rows.push_back({one.what, amount_of(problem, aim.wish, one.aim), amount_of(problem, Wish::end, one.end),
                    amount_of(problem, Wish::cost, one.cost)});
  page.table({"what if", aim_names()[static_cast<std::size_t>(problem.aim)], "end", "cost"}, rows);
}

void add_others(page::Page& page, const Placed& placed) {
  const Problem& problem = placed.problem;
  page.heading("Other placements");
  page.paragraph(
      placed.found.proven
          ? fmt::format(
                "{} of {} placements were simulated; bounds prove that no other has a better usual course.",
                format_count(static_cast<double>(placed.found.simulated)),
                format_count(placed.found.placements))
          : fmt::format("{} of {} placements were simulated; there is no proof that the first is the best.",
                        format_count(static_cast<double>(placed.found.simulated)),
                        format_count(placed.found.placements)));
  Rows rows;
  for (const Assessed& one : placed.best) {
    std::vector<std::string> words;
    for (std::size_t t = 0; t < problem.workflow.tasks.size() && t < 12; ++t)
      words.push_back(problem.workflow.tasks[t].name + " on " + where_of(problem, one.candidate, t));
    rows.push_back({join(words, ", "), amount_of(problem, Wish::end, one.end.value),
                    amount_of(problem, Wish::latency, one.latency.value),
                    amount_of(problem, Wish::cost, one.cost.value), one.score.excess > 0 ? "no" : "yes"});
  }
  page.table({"tasks", "end", "latency", "cost", "targets met"}, rows);
  if (problem.facility.sites.size() < 2) return;
  Rows sites;
  const Target aim = target_of(problem.workflow, problem.aim);
  for (const Coupled& one : placed.coupled) {
    std::string as_good = "";
    if (one.possible && one.crossover > 0)
      as_good = fmt::format("links have {:.2g} of their rate", one.crossover);
    sites.push_back(
        {"everything at " + one.site,
         one.possible ? amount_of(problem, aim.wish, one.best.score.value) : "not possible: " + one.why_not,
         as_good});
  }
  page.heading("Coupled or disaggregated", 3);
  page.table(
      {"placement", aim_names()[static_cast<std::size_t>(problem.aim)], "as good as the best one where"},
      sites);
}

}  // namespace

void write_page(const Placed& placed, const std::filesystem::path& file) {
  const Problem& problem = placed.problem;
  page::Page page(fmt::format("{} on {}", problem.workflow.name, problem.facility.name));
  if (!problem.workflow.summary.empty()) page.paragraph(problem.workflow.summary);
  if (!problem.facility.summary.empty()) page.paragraph(problem.facility.summary);
  add_answer(page, placed);
  add_figures(page, placed);
  page.heading("The usual course");
  page.raw(draw_timeline(problem, placed.best.front()));
  page.paragraph("trace.json has the same for Perfetto (ui.perfetto.dev, Open trace file).");
  add_variants(page, placed);
  add_others(page, placed);
  page.write(file);
}

}  // namespace superstep::facility
