#include "superstep/study/quality/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/page/page.h"
#include "superstep/run/model.h"
#include "superstep/study/folder.h"
#include "superstep/study/report.h"

namespace superstep::study {
namespace {

std::string times(double ratio) { return fmt::format("{:.2g} times", ratio); }

std::string seconds_words(const Figure& figure) {
  if (!figure.value) return "-";
  return fmt::format("{} [{}, {}]", format_seconds(*figure.value), format_seconds(figure.low),
                     format_seconds(figure.high));
}

std::string energy_words(const Figure& figure) {
  if (!figure.value) return "-";
  return fmt::format("{} [{}, {}]", format_si(*figure.value, "J"), format_si(figure.low, "J"),
                     format_si(figure.high, "J"));
}

std::string steps_words(const Reached& each) {
  if (each.reached == 0) return "not reached";
  return fmt::format("{} [{}, {}]", number_words(each.steps), number_words(each.steps_low),
                     number_words(each.steps_high));
}

std::string place_words(const QualityCost& cost) {
  return fmt::format("{}{}, {}, batch {}", cost.machine,
                     cost.units > 1 ? fmt::format(" x {}", cost.units) : "", cost.precision, cost.batch);
}

void of_laws(const QualityReport& report, std::vector<std::string>& said) {
  for (const std::string& precision : report.settings.precisions) {
    const auto law = std::ranges::find(report.laws, precision, &BatchLaw::precision);
    if (law == report.laws.end()) {
      said.push_back(
          fmt::format("In {}, no critical batch is found: fewer than two batches reached the target with "
                      "every seed, or a larger one "
                      "does not save steps in proportion.",
                      precision));
      continue;
    }
    const auto [least, most] = std::ranges::minmax(report.settings.batches);
    const bool inside =
        law->critical_batch >= static_cast<double>(least) && law->critical_batch <= static_cast<double>(most);
    said.push_back(
        fmt::format("In {}, steps follow {} (1 + {} / batch){}: from a batch of about {} on, larger ones "
                    "hardly save steps{}.",
                    precision, number_words(law->least_steps), number_words(law->critical_batch),
                    law->batches == 2 ? ", by two batches alone, so that nothing checks it"
                                      : fmt::format(" to {:.0f} %", 100 * law->largest_deviation),
                    number_words(law->critical_batch),
                    inside ? "" : " (outside the batches that were tried, so this is extrapolated)"));
  }
}

void of_precisions(const QualityReport& report, std::vector<std::string>& said) {
  for (std::size_t i = 1; i < report.settings.precisions.size(); ++i) {
    std::vector<double> ratios;
    for (const Reached& other : report.reached)
      for (const Reached& first : report.reached)
        if (first.precision == report.settings.precisions[0] &&
            other.precision == report.settings.precisions[i] && first.batch == other.batch &&
            first.reached > 0 && other.reached > 0 && first.steps > 0)
          ratios.push_back(other.steps / first.steps);
    if (ratios.empty()) continue;
    const auto [least, most] = std::ranges::minmax(ratios);
    said.push_back(fmt::format("{} takes {} to {} the steps of {} at the same batch.",
                               report.settings.precisions[i], times(least), times(most),
                               report.settings.precisions[0]));
  }
}

void of_failures(const QualityReport& report, std::vector<std::string>& said) {
  for (const Training& training : report.trainings) {
    if (training.ending == Ending::reached) continue;
    said.push_back(fmt::format(
        "{}, batch {}, seed {}: {}.", training.precision, training.batch, training.seed,
        training.ending == Ending::failed ? "failed: " + training.words
                                          : fmt::format("not reached in {:.0f} steps (came to {})",
                                                        training.steps, number_words(training.best))));
  }
}

void of_costs(const QualityReport& report, std::vector<std::string>& said) {
  const QualityCost *fastest = nullptr, *least = nullptr;
  for (const QualityCost& cost : report.costs) {
    if (!cost.seconds.value) continue;
    if (!fastest || *cost.seconds.value < *fastest->seconds.value) fastest = &cost;
    if (!least || *cost.joules.value < *least->joules.value) least = &cost;
  }
  if (!fastest) return;
  said.push_back(
      fmt::format("Predicted fastest: {}, {}.", place_words(*fastest), seconds_words(fastest->seconds)));
  said.push_back(fmt::format("Predicted with the least energy: {}, {}.", place_words(*least),
                             energy_words(least->joules)));
  for (const QualityCost& cost : report.costs)
    if (&cost != fastest && cost.machine != fastest->machine && cost.seconds.value &&
        cost.seconds.low < fastest->seconds.high) {
      said.push_back("The fastest is not certain: intervals of other machines reach into its own.");
      return;
    }
}

page::Plot steps_plot(const QualityReport& report) {
  page::Plot plot{.title = "Steps to the target",
                  .x_label = "batch",
                  .y_label = "steps",
                  .log_x = true,
                  .log_y = true,
                  .series = {},
                  .horizontal = {},
                  .vertical = {}};
  for (const std::string& precision : report.settings.precisions) {
    page::Series points{.label = precision + ", measured", .style = page::Series::Style::points};
    for (const Training& training : report.trainings)
      if (training.precision == precision && training.ending == Ending::reached)
        points.x.push_back(static_cast<double>(training.batch)), points.y.push_back(training.steps);
    if (!points.x.empty()) plot.series.push_back(std::move(points));
  }
  for (const BatchLaw& law : report.laws) {
    page::Series line{.label = law.precision + ", law"};
    for (const std::int64_t batch : report.settings.batches) {
      line.x.push_back(static_cast<double>(batch));
      line.y.push_back(law.steps_at(static_cast<double>(batch)));
    }
    plot.series.push_back(std::move(line));
  }
  return plot;
}

page::Plot time_plot(const QualityReport& report) {
  page::Plot plot{.title = "Time to the target, predicted",
                  .x_label = "batch",
                  .y_label = "seconds",
                  .log_x = true,
                  .log_y = true,
                  .series = {},
                  .horizontal = {},
                  .vertical = {}};
  for (const std::string& machine : report.settings.machines)
    for (const int units : report.settings.units)
      for (const std::string& precision : report.settings.precisions) {
        page::Series line{.label = fmt::format("{}{}, {}", machine,
                                               units > 1 ? fmt::format(" x {}", units) : "", precision)};
        for (const QualityCost& cost : report.costs)
          if (cost.machine == machine && cost.units == units && cost.precision == precision &&
              cost.seconds.value) {
            line.x.push_back(static_cast<double>(cost.batch));
            line.y.push_back(*cost.seconds.value);
            line.low.push_back(cost.seconds.low);
            line.high.push_back(cost.seconds.high);
          }
        if (!line.x.empty()) plot.series.push_back(std::move(line));
      }
  return plot;
}

page::Plot front_plot(const QualityReport& report) {
  page::Plot plot{.title = "Time against energy; the best choices are joined",
                  .x_label = "seconds to the target",
                  .y_label = "J",
                  .log_x = true,
                  .log_y = true,
                  .series = {},
                  .horizontal = {},
                  .vertical = {}};
  for (const std::string& machine : report.settings.machines) {
    page::Series points{.label = machine, .style = page::Series::Style::points};
    for (const QualityCost& cost : report.costs)
      if (cost.machine == machine && cost.seconds.value)
        points.x.push_back(*cost.seconds.value), points.y.push_back(*cost.joules.value);
    if (!points.x.empty()) plot.series.push_back(std::move(points));
  }
  std::vector<std::pair<double, double>> best;
  for (const QualityCost& cost : report.costs)
    if (cost.best) best.emplace_back(*cost.seconds.value, *cost.joules.value);
  std::ranges::sort(best);
  page::Series front{.label = "best choices"};
  for (const auto& [seconds, joules] : best) front.x.push_back(seconds), front.y.push_back(joules);
  if (front.x.size() > 1) plot.series.push_back(std::move(front));
  return plot;
}

std::vector<std::vector<std::string>> reached_rows(const QualityReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const Reached& each : report.reached)
    rows.push_back({each.precision, fmt::format("{}", each.batch),
                    fmt::format("{} of {}", each.reached, each.seeds), steps_words(each),
                    each.reached > 0 ? number_words(each.samples()) : "-",
                    each.reached > 0 ? format_seconds(each.seconds) : "-"});
  return rows;
}
const std::vector<std::string> reached_header{"precision",        "batch",   "seeds that reached it",
                                              "steps [min, max]", "samples", "seconds on this computer"};

std::vector<std::string> cost_header(const QualityReport& report) {
  std::vector<std::string> header{"machine",         "precision",         "batch",
                                  "time [interval]", "energy [interval]", "best"};
  if (!report.settings.prices.empty()) header.insert(header.end() - 1, "price");
  return header;
}

std::vector<std::vector<std::string>> cost_rows(const QualityReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const QualityCost& cost : report.costs) {
    std::vector<std::string> row{
        cost.units > 1 ? fmt::format("{} x {}", cost.machine, cost.units) : cost.machine,
        cost.precision,
        fmt::format("{}", cost.batch),
        cost.seconds.value ? seconds_words(cost.seconds) : cost.seconds.words,
        energy_words(cost.joules),
        cost.best ? "yes" : ""};
    if (!report.settings.prices.empty())
      row.insert(row.end() - 1, cost.money.value ? fmt::format("{:.3g}", *cost.money.value) : "-");
    rows.push_back(std::move(row));
  }
  return rows;
}

nlohmann::json figure_json(const Figure& figure) {
  if (!figure.value) return {{"value", nullptr}, {"words", figure.words}};
  return {{"value", *figure.value}, {"low", figure.low}, {"high", figure.high}, {"words", figure.words}};
}

const char* name_of(Ending ending) {
  return ending == Ending::reached ? "reached" : ending == Ending::not_reached ? "not reached" : "failed";
}

void write(const QualityReport& report) {
  const HoldEnd hold;
  write_file_atomically(report.settings.out / "results.json", json_of(report).dump(1) + "\n");
  write_file_atomically(report.settings.out / "index.html", page_of(report));
}

}  // namespace

QualityReport study_quality(const QualitySettings& settings) {
  check(settings);
  const run::Model model({.workload = settings.workload, .model_options = settings.options});
  QualityReport report{.settings = settings,
                       .goal = run::to_string(settings.until, model.workload()),
                       .trainings = {},
                       .reached = {},
                       .laws = {},
                       .costs = {}};
  make_folder(settings.out);
  const FolderLock lock(settings.out);
  claim_folder(settings.out, "quality of " + settings.workload);
  report.trainings = trainings_of(settings);
  report.reached = summary_of(report.trainings);
  for (const std::string& precision : settings.precisions)
    if (const auto law = law_of(report.reached, precision)) report.laws.push_back(*law);
  report.costs = costs_of(settings, report.reached);
  write(report);
  return report;
}

std::vector<std::string> findings_of(const QualityReport& report) {
  std::vector<std::string> said;
  of_laws(report, said);
  of_precisions(report, said);
  of_costs(report, said);
  of_failures(report, said);
  return said;
}

std::string text_of(const QualityReport& report) {
  TextTable reached(reached_header), costs(cost_header(report));
  for (const auto& row : reached_rows(report)) reached.add_row(row);
  for (const auto& row : cost_rows(report)) costs.add_row(row);
  std::string text = fmt::format(
      "{}: until {}, learning rate by the batch: {}\n\nmeasured\n{}\npredicted (80 %), "
      "with the seeds' spread\n{}\n",
      report.settings.workload, report.goal, study::name_of(report.settings.rule), reached.to_string(),
      costs.to_string());
  for (const std::string& finding : findings_of(report)) text += "- " + finding + "\n";
  return text;
}

std::string page_of(const QualityReport& report) {
  page::Page page(fmt::format("{}: time to {}", report.settings.workload, report.goal));
  page.paragraph(
      fmt::format("Trained here with {} seeds each until {}; the learning rate follows the batch by the rule "
                  "'{}'. Steps are "
                  "where the quality passes the target on a line between two epochs. Times of machines are "
                  "these steps times "
                  "a predicted step with its data; their intervals join the prediction's 80 % with the first "
                  "and last seed.",
                  report.settings.seeds, report.goal, study::name_of(report.settings.rule)));
  std::string list = "<ul>";
  for (const std::string& finding : findings_of(report)) list += "<li>" + page::escape(finding) + "</li>";
  page.heading("What follows").raw(list + "</ul>");
  if (const page::Plot plot = steps_plot(report); !plot.series.empty()) page.heading("By batch").plot(plot);
  page.table(reached_header, reached_rows(report));
  if (const page::Plot plot = time_plot(report); !plot.series.empty())
    page.heading("On machines").plot(plot).plot(front_plot(report));
  page.table(cost_header(report), cost_rows(report));
  std::string commands;
  for (const Training& training : report.trainings)
    commands += "superstep " + join(training.command, " ") + "\n";
  page.heading("Commands").preformatted(commands);
  return page.to_html();
}

nlohmann::json json_of(const QualityReport& report) {
  nlohmann::json trainings = nlohmann::json::array(), costs = nlohmann::json::array(),
                 laws = nlohmann::json::array();
  for (const Training& t : report.trainings)
    trainings.push_back({{"precision", t.precision},
                         {"batch", t.batch},
                         {"seed", t.seed},
                         {"learning_rate", t.learning_rate},
                         {"ending", name_of(t.ending)},
                         {"steps", t.steps},
                         {"steps_low", t.steps_low},
                         {"steps_high", t.steps_high},
                         {"quality", t.best},
                         {"seconds", t.seconds},
                         {"words", t.words},
                         {"command", "superstep " + join(t.command, " ")}});
  for (const BatchLaw& law : report.laws)
    laws.push_back({{"precision", law.precision},
                    {"least_steps", law.least_steps},
                    {"critical_batch", law.critical_batch},
                    {"largest_deviation", law.largest_deviation},
                    {"batches", law.batches}});
  for (const QualityCost& cost : report.costs)
    costs.push_back({{"machine", cost.machine},
                     {"units", cost.units},
                     {"precision", cost.precision},
                     {"batch", cost.batch},
                     {"seconds", figure_json(cost.seconds)},
                     {"joules", figure_json(cost.joules)},
                     {"price", figure_json(cost.money)},
                     {"best", cost.best}});
  return {{"schema", "superstep-quality-study/1"},
          {"workload", report.settings.workload},
          {"until", report.goal},
          {"rate_rule", study::name_of(report.settings.rule)},
          {"findings", findings_of(report)},
          {"trainings", std::move(trainings)},
          {"laws", std::move(laws)},
          {"costs", std::move(costs)}};
}

}  // namespace superstep::study
