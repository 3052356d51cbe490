// Where the current flows through sections of cathodes, and how far the predicted conductivity is off.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/statistics.h"
#include "superstep/physics/materials/conductivity.h"
#include "superstep/workload/materials/conductivity/conductivity.h"

namespace superstep::workload {
namespace {

constexpr std::size_t sections_each = 2;
constexpr int section_pixels = 192;  // CSS pixels across

std::vector<float> pixels_of(const Fields& fields, std::int64_t index) {
  const Tensor& images = fields.at("image");
  const std::int64_t area = images.element_count() / images.shape()[0];
  std::vector<float> pixels;
  for (std::int64_t i = 0; i < area; ++i) pixels.push_back(static_cast<float>(images.at(index * area + i)));
  return pixels;
}

double insulator_share(const std::vector<float>& pixels) {
  return static_cast<double>(std::ranges::count(pixels, 0.0f)) / static_cast<double>(pixels.size());
}

// The ratio over the area of the insulator, true and predicted, with the bound that no isotropic mixture
// exceeds (Z. Hashin, S. Shtrikman, J. Appl. Phys. 33, 3125 (1962), in two dimensions); a small section may.
page::Plot ratio_over_area(const Fields& fields, const Predictions& found, const std::vector<double>& truth,
                           const std::vector<double>& predicted) {
  page::Plot plot{.title = "Ratio over the area of the insulator",
                  .x_label = "area fraction of the insulator",
                  .y_label = "sigma_eff / sigma",
                  .series = {}};
  std::vector<double> shares;
  for (const std::int64_t index : found.indices) shares.push_back(insulator_share(pixels_of(fields, index)));
  using Style = page::Series::Style;
  plot.series.push_back({.label = "solved", .x = shares, .y = truth, .style = Style::points});
  plot.series.push_back({.label = "predicted", .x = shares, .y = predicted, .style = Style::points});
  page::Series bound{.label = "bound of isotropic mixtures", .x = {}, .y = {}},
      medium{.label = "effective medium", .x = {}, .y = {}};
  constexpr int steps = 50;
  for (int i = 0; i <= steps; ++i) {
    const double share = static_cast<double>(i) / steps;
    bound.x.push_back(share), bound.y.push_back((1 - share) / (1 + share));
    medium.x.push_back(share), medium.y.push_back(std::max(0.0, 1 - 2 * share));
  }
  plot.series.push_back(bound);
  plot.series.push_back(medium);
  return plot;
}

void add_section(page::Page& page, const Fields& fields, std::int64_t index, const std::string& title) {
  const int side = static_cast<int>(fields.at("image").shape()[1]),
            scale = std::max(1, section_pixels / side);
  const std::vector<float> pixels = pixels_of(fields, index);
  const std::vector<double> sigma(pixels.begin(), pixels.end());
  const auto solved = data::effective_conductivity(sigma, side, side, {.keep_potential = true});
  const std::vector<float> density = data::current_density(solved, sigma, side, side);
  // A few pixels at narrow necks carry many times what the others do.
  const double top = quantile(std::vector<double>(density.begin(), density.end()), 0.99);
  using page::Colormap;
  const auto picture = [&](page::Image image, const char* caption) {
    return page::Picture{.image = std::move(image), .caption = caption, .marks = {}, .scale = scale};
  };
  std::vector<page::Picture> pictures{
      picture(page::colored(pixels, side, side, Colormap::gray, 0.0f, 1.0f), "section: white conducts"),
      picture(page::colored(density, side, side, Colormap::viridis, 0.0f,
                            top > 0 ? static_cast<float>(top) : 1.0f),
              "current density")};
  pictures[1].bar = page::ColorBar{Colormap::viridis, "0", "the largest but 1 %", "current density"};
  page.begin_column().heading(title, 4).pictures(pictures).end_column();
}

// The best of all are sections that nothing crosses: they show neither a current nor what the network can do.
void add_sections(page::Page& page, const Fields& fields, const Predictions& found,
                  const std::vector<double>& truth, const std::vector<double>& predicted) {
  std::vector<std::size_t> places;
  for (const bool conducting : {true, false})
    for (std::size_t k = 0; k < truth.size() && (conducting || places.empty()); ++k)
      if (!conducting || truth[k] > 0) places.push_back(k);
  std::vector<double> errors;
  for (const std::size_t k : places) errors.push_back(std::abs(predicted[k] - truth[k]));
  page.begin_row();
  for (const Chosen& chosen : best_median_worst(errors, sections_each)) {
    const std::size_t k = places[chosen.at];
    add_section(page, fields, found.indices[k],
                fmt::format("{}: sample {}, {:.4f} solved, {:.4f} predicted", chosen.why, found.indices[k],
                            truth[k], predicted[k]));
  }
  page.end_row();
}

}  // namespace

std::string present_cathodes(const Fields& fields, const Predictions& found, page::Page& page) {
  const std::vector<double> truth = true_ratios(fields, found.indices);
  const std::vector<double> predicted = predicted_ratios(fields, found.indices, found.outputs[0]);
  present_regression(page, {.quantity = "sigma_eff / sigma",
                            .unit = "",
                            .truth = truth,
                            .found = predicted,
                            .samples = {found.indices.begin(), found.indices.end()}});
  page.plot(ratio_over_area(fields, found, truth, predicted));
  add_sections(page, fields, found, truth, predicted);
  return {};
}

}  // namespace superstep::workload
