#include "superstep/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/study/quality/report.h"
#include "superstep/study/quality/tables.h"

namespace superstep::study {
namespace {

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

// The scale at each training's first and last step, and the critical batch that the trainings measure.
page::Plot noise_plot(const QualityReport& report) {
  page::Plot plot{.title = "Gradient noise scale, and the critical batch",
                  .x_label = "step",
                  .y_label = "samples",
                  .log_y = true,
                  .series = {},
                  .horizontal = {},
                  .vertical = {}};
  for (const std::string& precision : report.settings.precisions)
    for (const std::int64_t batch : report.settings.batches) {
      page::Series line{.label = fmt::format("{}, batch {}", precision, batch)};
      for (const MeasuredNoise& each : report.noises)
        if (each.precision == precision && each.batch == batch && each.scale &&
            std::isfinite(each.scale->batch))
          line.x.push_back(static_cast<double>(each.step)), line.y.push_back(each.scale->batch);
      if (!line.x.empty()) plot.series.push_back(std::move(line));
    }
  for (const BatchLaw& law : report.laws)
    plot.horizontal.push_back({law.critical_batch, law.precision + ", critical batch"});
  return plot;
}

// Of the first seeds: what an epoch is worth on this computer.
page::Plot curve_plot(const QualityReport& report) {
  page::Plot plot{.title = "Quality against time on this computer, first seeds",
                  .x_label = "seconds",
                  .y_label = report.settings.until.metric,
                  .series = {},
                  .horizontal = {{report.settings.until.value, "target"}},
                  .vertical = {}};
  for (const Training& training : report.trainings) {
    if (training.seed != 1 || training.curve.empty()) continue;
    page::Series line{.label = fmt::format("{}, batch {}", training.precision, training.batch)};
    for (const Training::Epoch& epoch : training.curve)
      line.x.push_back(epoch.seconds), line.y.push_back(epoch.quality);
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

}  // namespace

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
  const ReportTable reached = reached_table(report), costs = cost_table(report);
  page.table(reached.header, reached.rows);
  if (const page::Plot plot = curve_plot(report); !plot.series.empty()) page.plot(plot);
  const ReportTable noise = noise_table(report);
  if (const page::Plot plot = noise_plot(report); !plot.series.empty())
    page.heading("The noise of gradients").plot(plot);
  if (!noise.rows.empty()) page.table(noise.header, noise.rows);
  if (const page::Plot plot = time_plot(report); !plot.series.empty())
    page.heading("On machines").plot(plot).plot(front_plot(report));
  page.table(costs.header, costs.rows);
  std::string commands;
  for (const Training& training : report.trainings)
    commands += "superstep " + join(training.command, " ") + "\n";
  page.heading("Commands").preformatted(commands);
  return page.to_html();
}

}  // namespace superstep::study
