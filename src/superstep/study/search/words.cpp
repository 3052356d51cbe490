// A search in words, as a page and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"
#include "superstep/page/page.h"
#include "superstep/study/report.h"
#include "superstep/study/search/search.h"

namespace superstep::study {
namespace {

std::string quality_words(const Trial& trial) {
  return trial.qualities.empty() ? "-" : number_words(trial.qualities.back());
}

std::string epochs_words(const SearchReport& report, const Trial& trial) {
  if (trial.qualities.empty()) return "-";
  return fmt::format("{}", report.settings.halving.epochs[trial.qualities.size() - 1]);
}

std::string after_words(int epochs) {
  return fmt::format("after {} epoch{}", epochs, epochs == 1 ? "" : "s");
}

std::string state_words(const Trial& trial) {
  switch (trial.state) {
    case TrialState::paused: return "cut short";
    case TrialState::done: return "trained to the end";
    case TrialState::reached: return "reached the target";
    case TrialState::running: return "not done";
    case TrialState::diverged:
    case TrialState::failed: break;
  }
  return name_of(trial.state);
}

// Those that came furthest first, and the best of them.
std::vector<const Trial*> in_order(const SearchReport& report) {
  std::vector<const Trial*> all;
  for (const Trial& trial : report.trials) all.push_back(&trial);
  const double sign = report.settings.higher_is_better ? -1 : 1;
  const auto loss = [&](const Trial& trial) {
    const bool finite = !trial.qualities.empty() && std::isfinite(trial.qualities.back());
    return finite ? sign * trial.qualities.back() : INFINITY;
  };
  std::ranges::stable_sort(all, [&](const Trial* a, const Trial* b) {
    const auto rank = [&](const Trial& trial) {
      return std::tuple(trial.state != TrialState::reached, -static_cast<int>(trial.qualities.size()),
                        loss(trial));
    };
    return rank(*a) < rank(*b);
  });
  if (report.best) {
    const auto best = std::ranges::find(all, &report.trials[*report.best]);
    std::rotate(all.begin(), best, best + 1);
  }
  return all;
}

std::vector<std::string> header_of(const SearchReport& report) {
  std::vector<std::string> header{"trial"};
  for (const Parameter& parameter : report.settings.parameters) header.push_back(parameter.name);
  for (const std::string& name :
       {report.settings.metric, std::string("epochs"), std::string("how it ended"), std::string("time")})
    header.push_back(name);
  return header;
}

std::vector<std::vector<std::string>> rows_of(const SearchReport& report, std::size_t most) {
  std::vector<std::vector<std::string>> rows;
  for (const Trial* trial : in_order(report)) {
    if (rows.size() == most) break;
    std::vector<std::string> row{fmt::format("{}", trial->number)};
    row.insert(row.end(), trial->values.begin(), trial->values.end());
    row.resize(1 + report.settings.parameters.size(), "-");  // of a queued one that was refused
    for (const std::string& text : {quality_words(*trial), epochs_words(report, *trial), state_words(*trial),
                                    format_seconds(trial->seconds)})
      row.push_back(text);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string values_words(const SearchReport& report, const Trial& trial) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < trial.values.size(); ++i)
    words.push_back(report.settings.parameters[i].name + " " + trial.values[i]);
  return join(words, ", ");
}

std::string goal_words(const SearchReport& report) {
  const SearchSettings& settings = report.settings;
  std::string words =
      fmt::format("{}, {} is better", settings.metric, settings.higher_is_better ? "higher" : "lower");
  if (settings.until) words += fmt::format("; until {:g}", settings.until->value);
  return words;
}

page::Plot curves_plot(const SearchReport& report) {
  page::Plot plot{.title = {},
                  .x_label = "epoch",
                  .y_label = report.settings.metric,
                  .series = {},
                  .horizontal = {},
                  .vertical = {}};
  const auto add = [&](std::size_t i, const char* label) {
    const Curve& curve = report.curves[i];
    if (curve.epochs.empty()) return;
    plot.series.push_back({.label = label, .x = curve.epochs, .y = curve.qualities, .low = {}, .high = {}});
  };
  constexpr std::size_t most = 40;  // chosen: more lines cannot be told apart
  if (report.best) add(*report.best, "best");
  for (std::size_t i = 0; i < report.curves.size() && plot.series.size() < most; ++i)
    if (i != report.best) add(i, "");
  if (report.settings.until) plot.horizontal.push_back({report.settings.until->value, "target"});
  return plot;
}

// The qualities that trials came to against what they drew, by the rung that they were trained to.
page::Plot parameter_plot(const SearchReport& report, std::size_t index) {
  const Parameter& parameter = report.settings.parameters[index];
  page::Plot plot{.title = parameter.name,
                  .x_label = parameter.name,
                  .y_label = report.settings.metric,
                  .log_x = parameter.log,
                  .series = {},
                  .horizontal = {},
                  .vertical = {}};
  for (std::size_t rung = report.settings.halving.epochs.size(); rung-- > 0;) {
    page::Series points{.label = after_words(report.settings.halving.epochs[rung]),
                        .x = {},
                        .y = {},
                        .low = {},
                        .high = {},
                        .style = page::Series::Style::points};
    for (const Trial& trial : report.trials)
      if (trial.qualities.size() == rung + 1 && std::isfinite(trial.qualities.back())) {
        points.x.push_back(std::strtod(trial.values[index].c_str(), nullptr));
        points.y.push_back(trial.qualities.back());
      }
    if (!points.x.empty()) plot.series.push_back(std::move(points));
  }
  return plot;
}

// Choices that are words stand beside one another.
bool is_drawn(const Parameter& parameter) {
  const auto is_number = [](const std::string& text) {
    char* end = nullptr;
    std::strtod(text.c_str(), &end);
    return *end == '\0';
  };
  return parameter.kind != Parameter::Kind::choice ||
         (parameter.choices.size() > 1 && std::ranges::all_of(parameter.choices, is_number));
}

std::size_t counted(const SearchReport& report, TrialState state) {
  return static_cast<std::size_t>(
      std::ranges::count_if(report.trials, [&](const Trial& trial) { return trial.state == state; }));
}

nlohmann::json trial_json(const SearchReport& report, const Trial& trial) {
  nlohmann::json values = nlohmann::json::object(), qualities = nlohmann::json::array();
  for (std::size_t i = 0; i < trial.values.size(); ++i)
    values[report.settings.parameters[i].name] = trial.values[i];
  for (std::size_t rung = 0; rung < trial.qualities.size(); ++rung)
    qualities.push_back(
        {{"epochs", report.settings.halving.epochs[rung]}, {"quality", trial.qualities[rung]}});
  return {{"trial", trial.number},
          {"state", name_of(trial.state)},
          {"values", std::move(values)},
          {"qualities", std::move(qualities)},
          {"seconds", trial.seconds},
          {"words", trial.words},
          {"run", fmt::format("trials/{:04}/run", trial.number)}};
}

}  // namespace

std::vector<std::string> findings_of(const SearchReport& report) {
  std::vector<std::string> said;
  if (report.best) {
    const Trial& best = report.trials[*report.best];
    said.push_back(fmt::format("Best: trial {} ({}), {} {} {}, {}.", best.number, values_words(report, best),
                               report.settings.metric, quality_words(best),
                               after_words(report.settings.halving.epochs[best.qualities.size() - 1]),
                               state_words(best)));
    said.push_back("best.toml repeats it: superstep train --config " +
                   (report.settings.out / "best.toml").string());
  } else {
    said.push_back("No trial has a quality yet.");
  }
  double seconds = 0;
  for (const Trial& trial : report.trials) seconds += trial.seconds;
  said.push_back(
      fmt::format("{} trials in {} of training: {} trained to the end, {} cut short, {} diverged, "
                  "{} failed.",
                  report.trials.size(), format_seconds(seconds),
                  counted(report, TrialState::done) + counted(report, TrialState::reached),
                  counted(report, TrialState::paused), counted(report, TrialState::diverged),
                  counted(report, TrialState::failed)));
  for (const Trial& trial : report.trials)
    if (trial.state == TrialState::diverged || trial.state == TrialState::failed)
      said.push_back(fmt::format("Trial {} ({}) {}: {}.", trial.number, values_words(report, trial),
                                 name_of(trial.state), trial.words));
  if (!report.over) said.push_back("It is not over: the same call goes on.");
  return said;
}

std::string text_of(const SearchReport& report) {
  constexpr std::size_t most = 12;  // in a terminal; the page has all
  TextTable table(header_of(report));
  for (const std::vector<std::string>& row : rows_of(report, most)) table.add_row(row);
  std::string text =
      fmt::format("{}: {}\n{}", report.settings.workload, goal_words(report), table.to_string());
  if (report.trials.size() > most) text += fmt::format("and {} others\n", report.trials.size() - most);
  for (const std::string& finding : findings_of(report)) text += "- " + finding + "\n";
  return text;
}

std::string page_of(const SearchReport& report) {
  const SearchSettings& settings = report.settings;
  page::Page page(fmt::format("{}: a search", settings.workload));
  page.paragraph(fmt::format(
      "By {}. Trials are drawn at random; each trains for {} epochs, and the best one "
      "in {} of those that have come as far goes on (asynchronous successive halving, "
      "Li et al. 2020).",
      goal_words(report), fmt::join(settings.halving.epochs, ", then to "), settings.halving.keep_one_in));
  std::string list = "<ul>";
  for (const std::string& finding : findings_of(report)) list += "<li>" + page::escape(finding) + "</li>";
  page.heading("What follows").raw(list + "</ul>");
  if (const page::Plot plot = curves_plot(report); !plot.series.empty())
    page.heading("The trials").plot(plot);
  for (std::size_t i = 0; i < settings.parameters.size(); ++i)
    if (is_drawn(settings.parameters[i]))
      if (const page::Plot plot = parameter_plot(report, i); !plot.series.empty()) page.plot(plot);
  page.table(header_of(report), rows_of(report, report.trials.size()));
  std::vector<std::vector<std::string>> ranges;
  for (const Parameter& parameter : settings.parameters)
    ranges.push_back({parameter.name, range_words(parameter)});
  page.heading("What was searched").facts(ranges);
  if (report.best)
    page.heading("The best, to be repeated")
        .preformatted("superstep " + join(report.words_of(report.trials[*report.best]), " "));
  return page.to_html();
}

nlohmann::json json_of(const SearchReport& report) {
  const SearchSettings& settings = report.settings;
  nlohmann::json trials = nlohmann::json::array(), parameters = nlohmann::json::array();
  for (const Trial& trial : report.trials) trials.push_back(trial_json(report, trial));
  for (const Parameter& parameter : settings.parameters)
    parameters.push_back({{"name", parameter.name}, {"range", range_words(parameter)}});
  nlohmann::json json{{"schema", "superstep-search/1"},
                      {"workload", settings.workload},
                      {"options", settings.base},
                      {"metric", settings.metric},
                      {"higher_is_better", settings.higher_is_better},
                      {"rungs", settings.halving.epochs},
                      {"keep_one_in", settings.halving.keep_one_in},
                      {"seed", settings.seed},
                      {"parameters", std::move(parameters)},
                      {"over", report.over},
                      {"findings", findings_of(report)},
                      {"trials", std::move(trials)},
                      {"best", nullptr}};
  if (report.best) json["best"] = report.trials[*report.best].number;
  return json;
}

}  // namespace superstep::study
