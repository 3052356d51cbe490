// The stress on the wall, seen from above.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/workload/flow/wallmodel/wallmodel.h"

namespace superstep::workload {
namespace {

constexpr int map_columns = 41, map_rows = 15, map_scale = 8;  // cells of 0.4 hole diameters; CSS pixels
constexpr double map_x = 3.2, map_z = -3, map_cell = 0.4;

// The mean of the values of the points in each cell; not a number where there is none.
std::vector<float> map_of(const Tensor& position, std::span<const std::int64_t> indices,
                          std::span<const double> values) {
  std::vector<double> sum(std::size_t{map_columns} * map_rows), count(sum.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const double column = (position.at(3 * indices[i]) - map_x) / map_cell;
    const double row = (position.at(3 * indices[i] + 2) - map_z) / map_cell;
    if (!(column >= 0 && column < map_columns && row >= 0 && row < map_rows)) continue;
    const auto cell = static_cast<std::size_t>(row) * map_columns + static_cast<std::size_t>(column);
    sum[cell] += values[i], ++count[cell];
  }
  std::vector<float> means;
  for (std::size_t k = 0; k < sum.size(); ++k)
    means.push_back(count[k] > 0 ? static_cast<float>(sum[k] / count[k]) : std::nanf(""));
  return means;
}

}  // namespace

void present_wall_maps(page::Page& page, const Tensor& position, const Regression& stress,
                       std::span<const std::int64_t> indices) {
  std::vector<double> error;
  for (std::size_t i = 0; i < stress.truth.size(); ++i) error.push_back(stress.found[i] - stress.truth[i]);
  const auto truth = map_of(position, indices, stress.truth), found = map_of(position, indices, stress.found),
             off = map_of(position, indices, error);
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (const float value : truth)
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  if (!(low < high)) return;
  const auto picture = [&](const std::vector<float>& values, const char* caption, bool difference) {
    const auto map = difference ? page::Colormap::difference : page::Colormap::viridis;
    const float reach = (high - low) / 2, from = difference ? -reach : low, to = difference ? reach : high;
    return page::Picture{.image = page::colored(values, map_columns, map_rows, map, from, to),
                         .caption = caption,
                         .marks = {},
                         .scale = map_scale,
                         .bar = page::ColorBar{map, fmt::format("{:.2g}", from), fmt::format("{:.2g}", to),
                                               difference ? "error" : "stress"}};
  };
  page.heading("The wall from above, x to the right, z downwards", 3);
  page.pictures({picture(truth, "true", false), picture(found, "predicted", false),
                 picture(off, "predicted - true", true)});
  page.paragraph("Means over cells of 0.4 hole diameters; cells without a point are magenta.");
}

}  // namespace superstep::workload
