// Windows of oscillations with their true and found number of periods.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/data/oscillation_generator.h"
#include "superstep/run/task/pictures.h"

namespace superstep::run {
namespace {

constexpr std::int64_t shown_sensors = 3;

page::Plot window_plot(const Tensor& x, std::int64_t sample, const std::string& title) {
  const std::int64_t steps = x.shape()[1], sensors = x.shape()[2];
  page::Plot plot{.title = title, .x_label = "step", .y_label = "amplitude", .series = {}};
  for (std::int64_t sensor = 0; sensor < std::min(sensors, shown_sensors); ++sensor) {
    page::Series series{.label = fmt::format("sensor {}", sensor + 1), .x = {}, .y = {}};
    for (std::int64_t step = 0; step < steps; ++step) {
      series.x.push_back(static_cast<double>(step));
      series.y.push_back(x.at((sample * steps + step) * sensors + sensor));
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace

std::string present_oscillations(const Fields& fields, const Predictions& found, page::Page& page) {
  const Tensor& target = fields.at("target");
  Regression periods{.quantity = "Periods in a window",
                     .unit = "",
                     .truth = {},
                     .found = {},
                     .samples = {found.indices.begin(), found.indices.end()}};
  std::vector<double> distances;
  for (std::size_t i = 0; i < found.indices.size(); ++i) {
    periods.truth.push_back(data::fastest_oscillation * target.at(found.indices[i]));
    periods.found.push_back(data::fastest_oscillation * found.outputs[0].at(static_cast<std::int64_t>(i)));
    distances.push_back(std::abs(periods.found[i] - periods.truth[i]));
  }
  present_regression(page, periods);
  page.heading("Windows", 3).begin_row();
  for (const Chosen& chosen : best_median_worst(distances, 1))
    page.plot(window_plot(fields.at("x"), found.indices[chosen.at],
                          fmt::format("{}: {:.2f} periods true, {:.2f} found", chosen.why,
                                      periods.truth[chosen.at], periods.found[chosen.at])));
  page.end_row();
  return {};
}

}  // namespace superstep::run
