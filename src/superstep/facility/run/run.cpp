#include "superstep/facility/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/base/text.h"
#include "superstep/facility/place/timeline.h"
#include "superstep/facility/run/shop.h"
#include "superstep/page/page.h"

namespace superstep::facility {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kept_name = "run.json";
// Of one source: each is a file of its own.
constexpr std::int64_t most_files = 100'000;

// What firings of an earlier call were about: names, inputs and counts. Commands and times may have been
// mended since.
Json shape_of(const Workflow& workflow) {
  Json shape = Json::array();
  for (const Source& source : workflow.sources) shape.push_back({source.name, source.count, source.files});
  for (const Task& task : workflow.tasks) {
    Json inputs = Json::array();
    for (const Input& input : task.inputs) inputs.push_back({input.of_source, input.from, input.every});
    shape.push_back({task.name, std::move(inputs), task.uses, static_cast<int>(task.trigger)});
  }
  return shape;
}

Json kept_of(const RunSettings& settings) {
  return {{"workflow", shape_of(read_workflow(settings.place.workflow))},
          {"items", settings.most_items},
          {"speed", settings.speed}};
}

// Where tasks went in the calls before, as --fix has it; empty: there were none. Throws Error
// (invalid_argument) where the folder holds another run, or other things.
std::vector<std::string> kept_places(const RunSettings& settings) {
  const fs::path file = settings.out / kept_name;
  if (!fs::exists(file) && holds_nothing(settings.out)) return {};
  if (!fs::exists(file))
    throw Error(ErrorCode::invalid_argument, "has other things in it, and no run", settings.out.string(),
                "a folder of its own for each run");
  const Json kept = parse_json(read_text_file(file)), now = kept_of(settings);
  if (kept.is_discarded() || !kept.is_object() || !kept.contains("places"))
    throw Error(ErrorCode::bad_file, "is no record of a run", file.string());
  for (const auto& [key, value] : now.items())
    if (kept.value(key, Json()) != value)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("holds a run {}", key == "workflow" ? "of another workflow" : "with another --" + key),
          settings.out.string(), "another --out, or the files and options as they were");
  const auto places = kept["places"].get<std::vector<std::string>>();
  for (const std::string& word : settings.place.fixed)
    if (std::ranges::find(places, word) == places.end())
      throw Error(ErrorCode::invalid_argument,
                  "the run in this folder has it elsewhere: " + join(places, ", "), "--fix " + word);
  return places;
}

void require_ways(const Placed& placed, const RunSettings& settings) {
  const Workflow& workflow = placed.problem.workflow;
  for (const Source& source : workflow.sources)
    if (source.count > most_files)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("source {} has {} items, each a file", source.name, source.count),
                  workflow.file, "--items N takes the first ones alone");
  if (settings.speed == 1) return;
  for (const Task& task : workflow.tasks)
    if (!task.run.empty())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("commands take their own time, and {} has one", task.name), "--speed",
                  "it is for rehearsals in which every task is emulated");
}

std::vector<std::string> places_of(const Placed& placed) {
  std::vector<std::string> places;
  const Candidate& best = placed.best.front().candidate;
  for (std::size_t t = 0; t < placed.problem.workflow.tasks.size(); ++t) {
    const Place& place = placed.problem.choices[t].choices[static_cast<std::size_t>(best.chosen[t])].place;
    places.push_back(placed.problem.workflow.tasks[t].name + "=" +
                     placed.problem.facility.partitions[static_cast<std::size_t>(place.partition)].name);
  }
  return places;
}

std::map<std::string, double> measured_times(const Placed& placed, const Simulated& actual) {
  std::map<std::string, std::vector<double>> seconds;
  for (const Span& span : actual.timeline)
    if (!span.link)
      seconds[placed.problem.workflow.tasks[static_cast<std::size_t>(span.what)].name].push_back(span.end -
                                                                                                 span.begin);
  std::map<std::string, double> medians;
  for (const Task& task : placed.problem.workflow.tasks)
    if (!task.run.empty() && seconds.contains(task.name)) medians[task.name] = median(seconds[task.name]);
  return medians;
}

const std::vector<std::string> columns{"task", "on", "times", "simulated", "in this run", "ended"};

std::vector<std::vector<std::string>> rows_of(const Ran& ran) {
  const Problem& problem = ran.placed.problem;
  const Candidate& best = ran.placed.best.front().candidate;
  std::vector<std::vector<std::string>> rows;
  for (const int at : problem.workflow.order) {
    const auto t = static_cast<std::size_t>(at);
    const Task& task = problem.workflow.tasks[t];
    const auto measured = ran.measured.find(task.name);
    std::string took = "emulated";
    if (!task.run.empty())
      took = measured == ran.measured.end() ? "by an earlier call" : format_seconds(measured->second);
    const Choice& choice = problem.choices[t].choices[static_cast<std::size_t>(best.chosen[t])];
    rows.push_back({task.name, where_of(problem, best, t), format_count(ran.actual.tasks[t].firings),
                    format_seconds(choice.place.seconds.value), took,
                    format_seconds(ran.actual.tasks[t].last)});
  }
  return rows;
}

}  // namespace

Ran run(const RunSettings& settings) {
  RunSettings now = settings;
  const std::vector<std::string> kept = kept_places(settings);
  if (!kept.empty()) now.place.fixed = kept;
  Ran ran{.placed = place(now.place)};
  for (Source& source : ran.placed.problem.workflow.sources)
    if (settings.most_items > 0) source.count = std::min(source.count, settings.most_items);
  require_ways(ran.placed, settings);
  make_folder(settings.out);
  const FolderLock lock(settings.out);
  if (kept.empty()) {
    Json record = kept_of(settings);
    record["places"] = places_of(ran.placed);
    write_file_atomically(settings.out / kept_name, record.dump(2) + "\n");
  }
  const Plan plan = ran.placed.problem.plan_of(ran.placed.best.front().candidate.chosen);
  const SimulationSettings one_by_one{.most_items = most_files, .timeline = true};
  ran.simulated = simulate(plan, one_by_one);
  Shop shop(settings.out, plan, settings.speed);
  ran.actual = run_in(shop, plan, one_by_one);
  ran.went_on = shop.went_on();
  ran.measured = measured_times(ran.placed, ran.actual);
  write_file_atomically(settings.out / "prov.json", provenance_of(settings, ran));
  write_page(ran, settings.out / "index.html");
  return ran;
}

std::string text_of(const Ran& ran) {
  const Problem& problem = ran.placed.problem;
  TextTable table(columns);
  for (const auto& row : rows_of(ran)) table.add_row(row);
  std::string text = table.to_string();
  if (ran.went_on > 0) text += fmt::format("{} firings were done by earlier calls\n", ran.went_on);
  text += fmt::format("end      {}, simulated {}\n", format_seconds(ran.actual.end),
                      format_seconds(ran.simulated.end));
  for (const Target& target : problem.workflow.targets) {
    const double is = figure_of(target, ran.actual);
    text += fmt::format("{}: {} of at most {}, simulated {}\n", target.name,
                        amount_of(problem, target.wish, is), amount_of(problem, target.wish, target.limit),
                        amount_of(problem, target.wish, figure_of(target, ran.simulated)));
  }
  return text;
}

void write_page(const Ran& ran, const fs::path& file) {
  const Problem& problem = ran.placed.problem;
  page::Page page(fmt::format("{}, done on {}", problem.workflow.name, problem.facility.name));
  page.paragraph(fmt::format("It ended after {}; simulated it ends after {}.", format_seconds(ran.actual.end),
                             format_seconds(ran.simulated.end)));
  page.table(columns, rows_of(ran));
  Assessed drawn{.candidate = ran.placed.best.front().candidate, .usual = ran.actual};
  page.heading("As it was done").raw(draw_timeline(problem, drawn));
  if (ran.went_on > 0)
    page.paragraph(fmt::format("{} firings were done by earlier calls and are not drawn.", ran.went_on));
  drawn.usual = ran.simulated;
  page.heading("As it was simulated").raw(draw_timeline(problem, drawn));
  page.write(file);
}

std::vector<Metric> metrics_of(const Ran& ran) {
  std::vector<Metric> metrics{
      {.name = "end_seconds", .value = ran.actual.end, .unit = "s", .how = How::measured},
      {.name = "simulated_end_seconds", .value = ran.simulated.end, .unit = "s", .how = How::predicted}};
  for (const auto& [task, seconds] : ran.measured)
    metrics.push_back({.name = task + "_seconds", .value = seconds, .unit = "s", .how = How::measured});
  return metrics;
}

}  // namespace superstep::facility
