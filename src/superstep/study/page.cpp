#include "superstep/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"
#include "superstep/record/member.h"
#include "superstep/study/report.h"
#include "superstep/study/to_quality.h"

namespace superstep::study {
namespace {

using page::Page;

std::string line_label(const Report& report, const Cell& cell) {
  const std::string& series = report.study.drawing.series;
  if (series.empty()) return "";
  const char* name = count_words(series);
  return (name ? std::string(name) + " " : "") + report.cells.text(cell, series);
}

// "throughput, samples/s".
std::string figure_name(const Report& report, const Cell& cell) {
  const std::string words = metric_words(report.cells.text(cell, "metric"));
  const std::string& unit = report.cells.text(cell, "unit");
  return unit == "1" ? words : fmt::format("{}, {}", words, unit);
}

bool is_drawn(const Report& report, const Cell& cell) {
  const std::string& metric = report.study.drawing.metric;
  return metric.empty() || report.cells.text(cell, "metric") == metric;
}

// Of the first cell that is drawn; of parts of a time that they are of one unit.
std::string unit_words(const Report& report) {
  const auto first =
      std::ranges::find_if(report.cells.list, [&](const Cell& cell) { return is_drawn(report, cell); });
  if (first == report.cells.list.end()) return "";
  for (const Cell& cell : report.cells.list)
    if (is_drawn(report, cell) && report.cells.text(cell, "metric") != report.cells.text(*first, "metric"))
      return report.cells.text(*first, "unit");
  return figure_name(report, *first);
}

struct Point {
  double x, y, low, high;
};

page::Series series_of(std::string label, std::vector<Point> points, page::Series::Style style) {
  std::ranges::stable_sort(points, {}, &Point::x);
  page::Series series{.label = std::move(label), .x = {}, .y = {}, .low = {}, .high = {}, .style = style};
  const bool banded = std::ranges::all_of(points, [](const Point& point) { return point.high > 0; });
  for (const Point& point : points) {
    series.x.push_back(point.x);
    series.y.push_back(point.y);
    if (!banded || style != page::Series::Style::line) continue;
    series.low.push_back(point.low);
    series.high.push_back(point.high);
  }
  return series;
}

// Lines of what is predicted, points of what is published and measured.
page::Plot plot_of(const Report& report) {
  std::map<std::string, std::array<std::vector<Point>, 2>> lines;  // published, predicted
  std::vector<Point> measured;
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const Cell& cell = report.cells.list[i];
    const auto x = static_cast<double>(report.cells.position(cell, report.study.drawing.x));
    if (x <= 0 || !is_drawn(report, cell)) continue;
    auto& line = lines[line_label(report, cell)];
    if (cell.published) line[0].push_back({x, *cell.published, 0, 0});
    if (const Figure& figure = report.predicted[i]; figure.value)
      line[1].push_back({x, *figure.value, figure.low, figure.high});
    if (const Figure& figure = report.measured[i]; figure.value)
      measured.push_back({x, *figure.value, figure.low, figure.high});
  }
  page::Plot plot{.title = {},
                  .x_label = axis_words(report),
                  .y_label = unit_words(report),
                  .log_x = report.study.drawing.log_x,
                  .log_y = report.study.drawing.log_y,
                  .series = {},
                  .horizontal = {},
                  .vertical = {}};
  const auto add = [&](const std::string& label, const std::vector<Point>& points,
                       page::Series::Style style) {
    if (!points.empty()) plot.series.push_back(series_of(label, points, style));
  };
  for (const auto& [label, line] : lines) {
    const std::string prefix = label.empty() ? "" : label + ", ";
    add(prefix + "predicted", line[1], page::Series::Style::line);
    add(prefix + "published", line[0], page::Series::Style::points);
  }
  add("this computer, measured", measured, page::Series::Style::points);
  return plot;
}

// The longest bar of each workload that is drawn.
std::map<std::string, double> longest_by_workload(const Report& report) {
  std::map<std::string, double> longest;
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const Cell& cell = report.cells.list[i];
    if (!is_drawn(report, cell)) continue;
    double& most = longest[report.cells.text(cell, "workload")];
    for (const double value : {cell.published.value_or(0), report.predicted[i].value.value_or(0),
                               report.measured[i].value.value_or(0), report.executed[i].value.value_or(0)})
      most = std::max(most, value);
  }
  return longest;
}

// Whether workloads lie so far apart that bars of one would not be seen beside another's.
bool far_apart(const std::map<std::string, double>& longest) {
  constexpr double visible = 10;  // a tenth of a bar's length is seen and compared: chosen
  double least = 0, most = 0;
  for (const auto& [workload, value] : longest) {
    if (value <= 0) continue;
    least = least == 0 ? value : std::min(least, value);
    most = std::max(most, value);
  }
  return most > visible * least;
}

// Of figures without an axis of numbers: bars, longest first in each cell's group.
std::vector<page::Bar> bars_of(const Report& report) {
  const std::map<std::string, double> by_workload = longest_by_workload(report);
  const bool apart = far_apart(by_workload);
  double longest = 0;
  for (const auto& [workload, value] : by_workload) longest = std::max(longest, value);
  std::vector<page::Bar> bars;
  const std::vector<std::string> varying = varying_columns(report.cells);
  for (std::size_t i = 0; i < report.cells.list.size() && longest > 0; ++i) {
    const Cell& cell = report.cells.list[i];
    if (!is_drawn(report, cell)) continue;
    std::string label = label_of(report.cells, cell, varying);
    const double full = apart ? by_workload.at(report.cells.text(cell, "workload")) : longest;
    const auto add = [&](const char* who, std::optional<double> value, int color) {
      if (!value) return;
      bars.push_back({.label = std::exchange(label, ""),
                      .text = fmt::format("{} {}", number_words(*value), who),
                      .length = *value / full,
                      .full = 1,
                      .color = color,
                      .title = fmt::format("{}: {}", who, number_words(*value))});
    };
    add("published", cell.published, 0);
    add("predicted", report.predicted[i].value, 1);
    add("measured", report.measured[i].value, 2);
    add("executed", report.executed[i].value, 3);
  }
  return bars;
}

// Bars are of one quantity, or of parts of one time.
bool can_be_bars(const Report& report) {
  std::string unit, metric;
  bool one_unit = true, one_metric = true;
  for (const Cell& cell : report.cells.list) {
    if (!is_drawn(report, cell)) continue;
    const std::string &of = report.cells.text(cell, "unit"), &what = report.cells.text(cell, "metric");
    one_unit &= unit.empty() || unit == of;
    one_metric &= metric.empty() || metric == what;
    unit = of;
    metric = what;
  }
  return one_unit && (one_metric || unit == "s" || unit == "ms" || unit == "us");
}

bool same_unit(const Cells& cells) {
  return std::ranges::all_of(cells.list, [&](const Cell& cell) {
    return cells.text(cell, "metric") == cells.text(cells.list.front(), "metric") &&
           cells.text(cell, "unit") == cells.text(cells.list.front(), "unit");
  });
}

void add_drawing(Page& page, const Report& report) {
  if (!report.study.drawing.x.empty()) {
    const page::Plot plot = plot_of(report);
    if (!plot.series.empty()) page.heading("The figure").plot(plot);
    return;
  }
  if (!can_be_bars(report)) return;
  if (const std::vector<page::Bar> bars = bars_of(report); !bars.empty())
    page.heading("The figure")
        .paragraph(unit_words(report) +
                   (far_apart(longest_by_workload(report))
                        ? "; bars are as long as they are of the longest of their workload"
                        : ""))
        .bars(bars);
}

// How the quality grew with the time of this computer, and the page that says all of its trainings.
void add_quality(Page& page, const Report& report) {
  for (std::size_t job = 0; job < report.kept.size(); ++job) {
    if (report.plan.jobs[job].way != Way::quality || !report.kept[job]) continue;
    page::Plot plot{.title = "Quality against time on this computer, first seeds",
                    .x_label = "seconds",
                    .y_label = "quality",
                    .series = {},
                    .horizontal = {},
                    .vertical = {}};
    for (QualityCurve& curve : quality_curves(*report.kept[job]))
      plot.series.push_back(
          {.label = curve.label, .x = std::move(curve.seconds), .y = std::move(curve.values)});
    if (plot.series.empty()) continue;
    page.heading("Quality against time").plot(plot);
    page.raw(
        fmt::format("<p><a href=\"quality/{}/index.html\">All trainings, the noise of gradients and the "
                    "costs of machines</a></p>",
                    page::escape(report.plan.jobs[job].key)));
  }
}

// What prices the figures rest on.
void add_prices(Page& page, const Report& report) {
  if (report.study.prices.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const Price& price : report.study.prices)
    rows.push_back({price.machine, fmt::format("${:.2f}", price.dollars), price.source});
  page.heading("Prices")
      .paragraph(
          "Of one unit. They are stated, not measured, and list prices unless the source says "
          "otherwise. The option \u2011\u2011price MACHINE=X puts another in place of one.")
      .table({"machine", "price", "source"}, rows);
}

// A cell's name on one line.
std::string unbroken(std::string_view text) {
  std::string joined;
  for (const char letter : text)
    if (letter == ' ')
      joined += "\u00a0";
    else if (letter == '-')
      joined += "\u2011";
    else
      joined += letter;
  return joined;
}

// A note is a sentence and may be broken.
std::string name_in_table(const Report& report, const Cell& cell, const std::vector<std::string>& varying) {
  std::string label = label_of(report.cells, cell, varying);
  return std::ranges::find(varying, "note") == varying.end() ? unbroken(label) : label;
}

// Whether a figure was made here or by a model is said in its column's head and cannot be lost.
void add_table(Page& page, const Report& report) {
  std::vector<std::string> varying = varying_columns(report.cells);
  const bool several = !same_unit(report.cells);
  if (several) std::erase(varying, "metric");  // it has a column of its own
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const Cell& cell = report.cells.list[i];
    const Figure& predicted = report.predicted[i];
    const bool both = cell.published && predicted.value;
    std::vector<std::string> row{name_in_table(report, cell, varying),
                                 cell.published ? number_words(*cell.published) : "-",
                                 figure_words(predicted),
                                 both ? (predicted.inside(*cell.published) ? "yes" : "no") : "-",
                                 figure_words(report.measured[i]),
                                 report.measured[i].value ? unbroken(report.measured[i].words) : "-",
                                 figure_words(report.executed[i])};
    if (several) row.insert(row.begin() + 1, unbroken(figure_name(report, cell)));
    rows.push_back(std::move(row));
  }
  std::vector<std::string> header{"cell",
                                  "published",
                                  "predicted [80 %]",
                                  "held",
                                  "measured here [95 %]",
                                  "measured as",
                                  "executed on the model"};
  if (several) header.insert(header.begin() + 1, "figure");
  page.heading("The table");
  if (!several) page.paragraph(figure_name(report, report.cells.list.front()));
  page.table(header, rows);
}

std::string shell_words(const std::vector<std::string>& words) { return "superstep " + join(words, " "); }

void add_commands(Page& page, const Report& report) {
  std::string text;
  for (std::size_t job = 0; job < report.kept.size(); ++job)
    if (report.kept[job]) text += shell_words(report.kept[job]->words) + "\n";
  if (text.empty()) return;
  page.heading("Commands")
      .paragraph("What was measured here and executed on the model, to be repeated:")
      .preformatted(text);
}

void add_places(Page& page, const Report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const Cell& cell : report.cells.list)
    if (cell.published)
      rows.push_back({cell.key, report.cells.text(cell, "source"), report.cells.text(cell, "place"),
                      number_words(*cell.published), report.cells.text(cell, "unit"),
                      report.cells.text(cell, "note")});
  if (!rows.empty())
    page.heading("What is published").table({"row", "source", "place", "value", "unit", "note"}, rows);
}

void add_reasons(Page& page, const Report& report) {
  std::vector<std::vector<std::string>> rows;
  const std::vector<std::string> varying = varying_columns(report.cells);
  for (std::size_t i = 0; i < report.cells.list.size(); ++i)
    if (report.predicted[i].value)
      rows.push_back({name_in_table(report, report.cells.list[i], varying), report.predicted[i].words});
  if (!rows.empty())
    page.heading("What the predictions rest on").table({"cell", "assumed, and bound by"}, rows);
}

void add_versions(Page& page, const Report& report) {
  std::map<std::string, std::string> facts;
  for (const std::optional<Kept>& kept : report.kept) {
    if (!kept || kept->results.empty()) continue;
    const nlohmann::json& result = kept->results.front().environment;
    const nlohmann::json host = record::object_member(result, "host"),
                         cpu = record::object_member(host, "cpu");
    const nlohmann::json& program = kept->results.front().program;
    facts["program"] = fmt::format("superstep {} ({})", record::text_member(program, "version", "?"),
                                   record::text_member(program, "git", "?"));
    for (const nlohmann::json* from : {&host, &cpu})
      for (const char* name : {"processor", "model", "name"})
        if (const std::string text = record::text_member(*from, name, ""); !text.empty())
          facts["processor"] = text;
    facts["threads"] = fmt::format("{}", record::integer_member(kept->results.front().config, "threads", 0));
  }
  std::erase_if(facts, [](const auto& fact) { return fact.second == "0"; });
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, text] : facts) rows.push_back({name, text});
  if (!rows.empty()) page.heading("Measured with").facts(rows);
}

}  // namespace

std::string page_of(const Report& report) {
  Page page(report.study.title);
  const std::string place = join(std::vector{report.study.paper, report.study.place}, ", ");
  page.paragraph(fmt::format("{}{}", report.study.paper.empty() ? "" : place + ". ", report.study.shows));
  std::string list = "<ul>";
  for (const std::string& finding : findings_of(report)) list += "<li>" + page::escape(finding) + "</li>";
  page.heading("What agrees and what does not").raw(list + "</ul>");
  add_table(page, report);
  add_drawing(page, report);
  add_quality(page, report);
  add_prices(page, report);
  add_reasons(page, report);
  add_places(page, report);
  add_commands(page, report);
  add_versions(page, report);
  return page.to_html();
}

namespace {

nlohmann::json figure_json(const Figure& figure) {
  nlohmann::json json{{"value", nullptr}, {"low", nullptr}, {"high", nullptr}, {"words", figure.words}};
  if (figure.value) json["value"] = *figure.value;
  if (figure.high > 0) json["low"] = figure.low, json["high"] = figure.high;
  return json;
}

}  // namespace

nlohmann::json json_of(const Report& report) {
  nlohmann::json cells = nlohmann::json::array();
  for (std::size_t i = 0; i < report.cells.list.size(); ++i) {
    const Cell& cell = report.cells.list[i];
    nlohmann::json json{{"cell", cell.key}, {"published", nullptr}};
    for (const Column& column : columns())
      if (const std::string& text = report.cells.text(cell, column.name); !text.empty())
        json[std::string(column.name)] = text;
    if (cell.published)
      json["published"] = {{"value", *cell.published},
                           {"source", report.cells.text(cell, "source")},
                           {"place", report.cells.text(cell, "place")}};
    json["predicted"] = figure_json(report.predicted[i]);
    json["measured"] = figure_json(report.measured[i]);
    json["executed"] = figure_json(report.executed[i]);
    cells.push_back(std::move(json));
  }
  nlohmann::json commands = nlohmann::json::array();
  for (const std::optional<Kept>& kept : report.kept)
    if (kept) commands.push_back(shell_words(kept->words));
  nlohmann::json prices = nlohmann::json::array();
  for (const Price& price : report.study.prices)
    prices.push_back({{"machine", price.machine}, {"dollars", price.dollars}, {"source", price.source}});
  return {
      {"schema", "superstep-study/1"}, {"study", report.study.name},      {"title", report.study.title},
      {"paper", report.study.paper},   {"place", report.study.place},     {"findings", findings_of(report)},
      {"cells", std::move(cells)},     {"commands", std::move(commands)}, {"prices", std::move(prices)}};
}

}  // namespace superstep::study
