// Machines ranked by a measured quality, in words: for the terminal, as a page and as results.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"
#include "superstep/lab/advise/by_quality.h"
#include "superstep/page/page.h"

namespace superstep::lab {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string amount(Goal goal, double value) {
  return goal == Goal::energy ? format_si(value, "J")
         : goal == Goal::cost ? fmt::format("{:.3g}", value)
                              : format_seconds(value);
}

std::string with_interval(Goal goal, const Figure& figure) {
  return fmt::format("{} [{}, {}]", amount(goal, figure.value), amount(goal, figure.low),
                     amount(goal, figure.high));
}

std::string place_of(const QualityAdvice& advice) {
  if (advice.first_place == advice.last_place) return fmt::format("{}", advice.first_place);
  return fmt::format("{} to {}", advice.first_place, advice.last_place);
}

std::vector<std::string> header_of(Goal goal) {
  std::vector<std::string> header{"place", "machine", "precision", "units", "batch", "time to the target",
                                  "energy"};
  if (goal == Goal::cost) header.emplace_back("price");
  header.emplace_back("bound by");
  return header;
}

std::vector<std::string> row_of(const QualityAdvice& advice, const QualityOption& option, Goal goal,
                                const std::string& place) {
  std::vector<std::string> row{place,
                               advice.machine.id(),
                               option.precision,
                               fmt::format("{}", option.units),
                               fmt::format("{}", option.batch),
                               with_interval(Goal::time_to_quality, option.seconds),
                               with_interval(Goal::energy, option.joules)};
  if (goal == Goal::cost) row.push_back(with_interval(Goal::cost, option.money));
  row.push_back(option.bound);
  return row;
}

Rows rows_of(const std::vector<QualityAdvice>& machines, Goal goal, bool every_option) {
  Rows rows;
  for (const QualityAdvice& advice : machines) {
    if (advice.best < 0) continue;
    const auto& best = advice.options[static_cast<std::size_t>(advice.best)];
    rows.push_back(row_of(advice, best, goal, place_of(advice)));
    for (const QualityOption& option : advice.options)
      if (every_option && &option != &best) rows.push_back(row_of(advice, option, goal, ""));
  }
  return rows;
}

std::vector<std::string> remarks_of(const std::vector<QualityAdvice>& machines, const QualityCurve& curve) {
  std::vector<std::string> said;
  for (const QualityAdvice& advice : machines)
    if (advice.best < 0) said.push_back(fmt::format("{}: {}", advice.machine.id(), advice.words));
  for (const std::string& each : curve.left_out) said.push_back("left out: " + each);
  const bool other_bits = std::ranges::any_of(machines, [](const QualityAdvice& advice) {
    return std::ranges::any_of(
        advice.options, [](const QualityOption& option) { return option.measured_in != option.precision; });
  });
  if (other_bits)
    said.emplace_back(
        "f16, mixed and 16.16 are given the steps that bf16 was measured to take, tf32 those of f32");
  return said;
}

std::string basis_of(const QualityCurve& curve) {
  return fmt::format(
      "{} until {}: measured steps of {} ({} batches and precisions), times predicted steps; "
      "intervals join the prediction's 80 % with the first and last seed",
      curve.workload, curve.until, curve.source, curve.points.size());
}

page::Plot plot_of(const std::vector<QualityAdvice>& machines, Goal goal) {
  page::Plot plot{.title = {},
                  .x_label = "batch",
                  .y_label = goal == Goal::energy ? "J"
                             : goal == Goal::cost ? "price"
                                                  : "seconds",
                  .log_x = true,
                  .log_y = true,
                  .series = {},
                  .horizontal = {},
                  .vertical = {}};
  constexpr std::size_t most = 8;  // machines: plots tell as many series apart as they have colors
  for (const QualityAdvice& advice : machines) {
    if (advice.best < 0 || plot.series.size() == most) continue;
    std::map<std::int64_t, Figure> best;  // by batch
    for (const QualityOption& option : advice.options) {
      const Figure& figure = figure_of(goal, option);
      const auto [place, added] = best.emplace(option.batch, figure);
      if (!added && figure.value < place->second.value) place->second = figure;
    }
    page::Series line{.label = advice.machine.id(), .x = {}, .y = {}, .low = {}, .high = {}};
    for (const auto& [batch, figure] : best) {
      line.x.push_back(static_cast<double>(batch));
      line.y.push_back(figure.value);
    }
    plot.series.push_back(std::move(line));
  }
  return plot;
}

nlohmann::json json_of(const QualityOption& option) {
  const auto figure = [](const Figure& each) {
    return nlohmann::json{{"value", each.value}, {"low", each.low}, {"high", each.high}};
  };
  return {{"precision", option.precision},
          {"measured_in", option.measured_in},
          {"units", option.units},
          {"batch", option.batch},
          {"seconds", figure(option.seconds)},
          {"joules", figure(option.joules)},
          {"price", option.money.known() ? figure(option.money) : nlohmann::json()},
          {"bound_by", option.bound}};
}

}  // namespace

std::string text_of(const std::vector<QualityAdvice>& machines, const QualityCurve& curve, Goal goal,
                    bool every_option) {
  TextTable table(header_of(goal));
  for (const std::vector<std::string>& row : rows_of(machines, goal, every_option)) table.add_row(row);
  std::string text = basis_of(curve) + "\n" + table.to_string();
  for (const std::string& remark : remarks_of(machines, curve)) text += "- " + remark + "\n";
  return text;
}

std::string page_of(const std::vector<QualityAdvice>& machines, const QualityCurve& curve, Goal goal) {
  page::Page page(fmt::format("{}: machines for {}", curve.workload, name_of(goal)));
  page.paragraph(basis_of(curve) + ".");
  page.table(header_of(goal), rows_of(machines, goal, false));
  if (const page::Plot plot = plot_of(machines, goal); !plot.series.empty())
    page.heading("By batch").paragraph("Of each machine the best precision and number of units.").plot(plot);
  std::string list = "<ul>";
  for (const std::string& remark : remarks_of(machines, curve))
    list += "<li>" + page::escape(remark) + "</li>";
  page.raw(list + "</ul>");
  page.heading("All that was tried").table(header_of(goal), rows_of(machines, goal, true));
  return page.to_html();
}

std::vector<record::Result> results_of(const std::vector<QualityAdvice>& machines, const QualityCurve& curve,
                                       Goal goal) {
  std::vector<record::Result> results;
  for (const QualityAdvice& advice : machines) {
    if (advice.best < 0) continue;
    const QualityOption& best = advice.options[static_cast<std::size_t>(advice.best)];
    record::Result result{.command = "advise", .id = curve.workload + "/" + advice.machine.id()};
    result.workload = curve.workload;
    result.machine = advice.machine.id();
    result.mode = "train";
    const auto add = [&](const char* name, const Figure& figure, const char* unit) {
      if (!figure.known()) return;
      result.quantities.push_back({.name = name,
                                   .unit = unit,
                                   .value = figure.value,
                                   .how = How::predicted,
                                   .low = figure.low,
                                   .high = figure.high});
    };
    add("time_to_quality", best.seconds, "s");
    add("energy_to_quality", best.joules, "J");
    add("cost_to_quality", best.money, "");
    nlohmann::json options = nlohmann::json::array();
    for (const QualityOption& option : advice.options) options.push_back(json_of(option));
    result.details["options"] = std::move(options);
    result.details["best"] = json_of(best);
    result.details["places"] = {advice.first_place, advice.last_place};
    result.details["goal"] = name_of(goal);
    result.details["measured"] = {{"until", curve.until}, {"source", curve.source}};
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace superstep::lab
