// The object under the probe, true and predicted, and the difference.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/workload/xray/ptychonn/ptychonn.h"

namespace superstep::workload {
namespace {

constexpr std::size_t windows_each = 2;
constexpr int window_pixels = 160;

struct Quantity {
  const char *field, *name, *unit;
  std::size_t output;
};

// The model of both has the amplitude first; the model of one has the phase.
std::vector<Quantity> quantities_of(const Predictions& found) {
  if (found.outputs.size() > 1) return {{"phase", "phase", "rad", 1}, {"amp", "amplitude", "", 0}};
  return {{"phase", "phase", "rad", 0}};
}

std::size_t row_size(const Tensor& field) {
  return static_cast<std::size_t>(field.element_count() / field.shape()[0]);
}

std::vector<float> true_row(const Tensor& field, std::int64_t index) {
  std::vector<float> row(row_size(field));
  for (std::size_t k = 0; k < row.size(); ++k)
    row[k] = static_cast<float>(
        field.at(index * static_cast<std::int64_t>(row.size()) + static_cast<std::int64_t>(k)));
  return row;
}

std::span<const float> found_row(const Predictions& found, const Quantity& quantity, std::size_t at) {
  const auto values = found.outputs[quantity.output].as<float>();
  const std::size_t size = values.size() / found.indices.size();
  return values.subspan(at * size, size);
}

double mean_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += std::abs(static_cast<double>(a[k]) - b[k]);
  return sum / static_cast<double>(a.size());
}

std::string number(float value) {
  const std::string text = fmt::format("{:.2f}", std::abs(value) < 0.005f ? 0.0f : value);
  return text.starts_with('-') ? "\u2212" + text.substr(1) : text;
}

std::string words(const Quantity& quantity, const char* more = "") {
  return fmt::format("{}{}{}{}", quantity.name, more, *quantity.unit ? ", " : "", quantity.unit);
}

// True, predicted, difference; the first two on one range of colours.
std::vector<page::Picture> pictures_of(const Quantity& quantity, const std::vector<float>& truth,
                                       std::span<const float> found) {
  const int size = static_cast<int>(std::lround(std::sqrt(static_cast<double>(truth.size()))));
  const auto [low, high] = std::ranges::minmax_element(truth);
  std::vector<float> difference;
  for (std::size_t k = 0; k < truth.size(); ++k) difference.push_back(found[k] - truth[k]);
  const float reach = std::max(
      1e-3f, std::max(std::abs(std::ranges::min(difference)), std::abs(std::ranges::max(difference))));
  const int scale = std::max(1, window_pixels / size);
  using page::Colormap;
  const page::ColorBar bar{Colormap::viridis, number(*low), number(*high), words(quantity)};
  const auto picture = [&](page::Image image, const char* which, const page::ColorBar& colors) {
    return page::Picture{.image = std::move(image),
                         .caption = fmt::format("{} {}", which, quantity.name),
                         .marks = {},
                         .scale = scale,
                         .bar = colors};
  };
  return {picture(page::colored(truth, size, size, Colormap::viridis, *low, *high), "true", bar),
          picture(page::colored(found, size, size, Colormap::viridis, *low, *high), "predicted", bar),
          picture(page::colored(difference, size, size, Colormap::difference, -reach, reach), "difference of",
                  {Colormap::difference, number(-reach), number(reach),
                   words(quantity, ", predicted \u2212 true")})};
}

}  // namespace

std::string present_ptychography(const Fields& fields, const Predictions& found, page::Page& page) {
  const std::vector<Quantity> quantities = quantities_of(found);
  std::vector<double> errors;
  for (std::size_t i = 0; i < found.indices.size(); ++i)
    errors.push_back(mean_distance(true_row(fields.at("phase"), found.indices[i]),
                                   found_row(found, quantities.front(), i)));
  const auto finite = [](double error) { return std::isfinite(error); };
  const double largest = std::ranges::all_of(errors, finite) ? std::ranges::max(errors) : 1;
  page.plot({.title = "Mean error of the phase of a window",
             .x_label = "mean |predicted - true|, rad",
             .y_label = "windows",
             .series = {page::histogram("", errors, 0, largest, 40)}});
  for (const Chosen& chosen : best_median_worst(errors, windows_each)) {
    const std::int64_t index = found.indices[chosen.at];
    page.heading(fmt::format("{}: sample {}, {:.4f} rad", chosen.why, index, errors[chosen.at]), 3);
    page.begin_row();
    for (const Quantity& quantity : quantities)
      page.begin_column()
          .pictures(pictures_of(quantity, true_row(fields.at(quantity.field), index),
                                found_row(found, quantity, chosen.at)))
          .end_column();
    page.end_row();
  }
  return {};
}

}  // namespace superstep::workload
