#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/run/task/pictures.h"

namespace superstep::run {
namespace {

constexpr std::int64_t shown_sensors = 3;

page::Plot window_plot(const Oscillation& window, const Regression& periods, const Chosen& chosen) {
  const auto sensors = static_cast<std::size_t>(window.sensors);
  page::Plot plot{.title = fmt::format("{}: {:.2f} periods true, {:.2f} found", chosen.why,
                                       periods.truth[chosen.at], periods.found[chosen.at]),
                  .x_label = "step",
                  .y_label = "amplitude",
                  .series = {}};
  for (std::size_t sensor = 0; sensor < std::min<std::size_t>(sensors, shown_sensors); ++sensor) {
    page::Series series{.label = fmt::format("sensor {}", sensor + 1), .x = {}, .y = {}};
    for (std::size_t step = 0; step * sensors < window.values.size(); ++step) {
      series.x.push_back(static_cast<double>(step));
      series.y.push_back(static_cast<double>(window.values[step * sensors + sensor]));
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace

void present_oscillations(page::Page& page, const Regression& periods,
                          const std::function<Oscillation(std::size_t at)>& window) {
  present_regression(page, periods);
  std::vector<double> distances;
  for (std::size_t i = 0; i < periods.truth.size(); ++i)
    distances.push_back(std::abs(periods.found[i] - periods.truth[i]));
  page.heading("Windows", 3).begin_row();
  for (const Chosen& chosen : best_median_worst(distances, 1))
    page.plot(window_plot(window(chosen.at), periods, chosen));
  page.end_row();
}

}  // namespace superstep::run
