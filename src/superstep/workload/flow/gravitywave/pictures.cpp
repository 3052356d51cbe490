// Drag by height.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/physics/flow/gravity_waves.h"
#include "superstep/workload/flow/gravitywave/gravitywave.h"

namespace superstep::workload {
namespace {

// What stands at the middle of every layer.
page::Series profile(std::string label, std::span<const double> values) {
  const double depth = data::WaveGrid{.levels = static_cast<int>(values.size())}.depth() / 1e3;  // km
  page::Series series{.label = std::move(label)};
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!std::isfinite(values[k])) continue;  // where there is no drag there is no skill
    series.x.push_back(values[k]);
    series.y.push_back((static_cast<double>(k) + 0.5) * depth);
  }
  return series;
}

page::Plot plot_of(const char* title, const char* quantity, std::vector<page::Series> series) {
  page::Plot plot{.title = title, .x_label = quantity, .y_label = "height, km"};
  plot.series = std::move(series);
  return plot;
}

std::vector<double> row_of(const baseline::DragRows& rows, Eigen::Index row, Eigen::Index first) {
  std::vector<double> layers;
  for (Eigen::Index k = 0; k < rows.cols() / 2; ++k) layers.push_back(rows(row, first + k));
  return layers;
}

std::vector<double> sizes_by_height(const baseline::DragRows& rows) {
  std::vector<double> sizes;
  for (Eigen::Index k = 0; k < rows.cols() / 2; ++k)
    sizes.push_back(std::sqrt(rows.col(k).cast<double>().squaredNorm() / static_cast<double>(rows.rows())));
  return sizes;
}

std::vector<double> layers_of_wind(const Tensor& wind, std::int64_t index) {
  std::vector<double> layers;
  for (std::int64_t k = 0; k < wind.shape()[1]; ++k) layers.push_back(wind.at(index * wind.shape()[1] + k));
  return layers;
}

// Errors by column, in what the drag of that layer varies by.
std::vector<double> errors_of(const baseline::DragRows& truth, const baseline::DragRows& found) {
  std::vector<double> errors(static_cast<std::size_t>(truth.rows()));
  for (Eigen::Index k = 0; k < truth.cols(); ++k) {
    const Eigen::VectorXd own = truth.col(k).cast<double>();
    const double deviation =
        (own.array() - own.mean()).matrix().squaredNorm() / static_cast<double>(own.size());
    for (Eigen::Index i = 0; i < truth.rows() && deviation > 0; ++i)
      errors[static_cast<std::size_t>(i)] += std::pow(found(i, k) - truth(i, k), 2) / deviation;
  }
  return errors;
}

}  // namespace

std::string present_wave_drag(const Fields& fields, const Predictions& predictions, page::Page& page) {
  const baseline::DragRows truth = true_drag(fields, predictions.indices),
                           found = found_drag(predictions.outputs);
  const baseline::DragScore score = baseline::score_drag(truth, found);
  page.heading("Drag by height", 3);
  page.begin_row();
  page.plot(plot_of("Size of the drag on u", "root mean square, m/s a day",
                    {profile("true", sizes_by_height(truth)), profile("predicted", sizes_by_height(found))}));
  page.plot(plot_of("Share of the drag that is explained", "R2",
                    {profile("u", score.r2_u), profile("v", score.r2_v)}));
  page.end_row();
  for (const Chosen& chosen : best_median_worst(errors_of(truth, found), 1)) {
    const auto row = static_cast<Eigen::Index>(chosen.at);
    const std::int64_t index = predictions.indices[chosen.at];
    page.heading(fmt::format("{}: sample {}", chosen.why, index), 3);
    page.begin_row();
    page.plot(plot_of("Wind", "m/s",
                      {profile("u", layers_of_wind(fields.at("u"), index)),
                       profile("v", layers_of_wind(fields.at("v"), index))}));
    page.plot(plot_of("Drag on u", "m/s a day",
                      {profile("true", row_of(truth, row, 0)), profile("predicted", row_of(found, row, 0))}));
    const Eigen::Index levels = truth.cols() / 2;
    page.plot(plot_of(
        "Drag on v", "m/s a day",
        {profile("true", row_of(truth, row, levels)), profile("predicted", row_of(found, row, levels))}));
    page.end_row();
  }
  return {};
}

}  // namespace superstep::workload
