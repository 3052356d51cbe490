#include "superstep/workload/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "superstep/workload/spread.h"

namespace superstep::workload {

Metric quality_metric(const char* name, double value, const char* unit) {
  return {.name = name, .value = value, .unit = unit, .samples = {}};
}

std::vector<std::int64_t> first_samples(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers;
}

std::vector<Metric> spread_metrics(std::span<const double> errors, std::span<const double> spreads) {
  const auto found = calibrate_spread(errors, spreads);
  if (!found) return {};
  std::vector<Metric> metrics{quality_metric("spread_factor", found->factor),
                              quality_metric("spread_inside_1", found->inside_one),
                              quality_metric("spread_inside_2", found->inside_two),
                              quality_metric("spread_rank_correlation", found->rank_correlation)};
  if (!std::isfinite(found->times_for_90)) return metrics;
  metrics.push_back(quality_metric("spread_times_for_90", found->times_for_90));
  metrics.push_back(quality_metric("spread_inside_90", found->inside_90));
  return metrics;
}

std::vector<std::int64_t> some_of(std::span<const std::int64_t> indices, std::size_t most) {
  std::vector<std::int64_t> some;
  const std::size_t count = std::min(most, indices.size());
  for (std::size_t i = 0; i < count; ++i) some.push_back(indices[i * indices.size() / count]);
  return some;
}

std::string of_some(std::size_t some, std::size_t all, const char* things) {
  return some < all ? fmt::format(", of {} of the {}", some, things) : "";
}

double is_highest(std::span<const float> scores, std::int64_t label) {
  if (std::ranges::any_of(scores, [](float score) { return std::isnan(score); }))
    return std::numeric_limits<double>::quiet_NaN();
  return std::ranges::max_element(scores) - scores.begin() == label ? 1 : 0;
}

std::vector<Metric> accuracy_of_labels(const Fields& fields, std::span<const std::int64_t> indices,
                                       std::span<const Tensor> outputs) {
  const Tensor& labels = fields.at("label");
  const auto scores = outputs[0].as<float>();
  const std::size_t classes = scores.size() / std::max<std::size_t>(1, indices.size());
  double right = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto row = scores.subspan(i * classes, classes);
    right += is_highest(row, static_cast<std::int64_t>(labels.at(indices[i])));
  }
  return {quality_metric("accuracy", right / static_cast<double>(indices.size()))};
}

namespace {

// The mean of `measure` of the difference between outputs and field.
template <class Measure>
double mean_of_differences(const Tensor& field, std::span<const std::int64_t> indices, const Tensor& output,
                           Measure measure) {
  const auto values = output.as<float>();
  const std::size_t row = values.size() / std::max<std::size_t>(1, indices.size());
  double sum = 0;
  for (std::size_t i = 0; i < indices.size(); ++i)
    for (std::size_t k = 0; k < row; ++k)
      sum += measure(static_cast<double>(values[i * row + k]) -
                     field.at(indices[i] * static_cast<std::int64_t>(row) + static_cast<std::int64_t>(k)));
  return sum / static_cast<double>(std::max<std::size_t>(1, values.size()));
}

}  // namespace

std::vector<Metric> rmse_of_target(const Fields& fields, std::span<const std::int64_t> indices,
                                   std::span<const Tensor> outputs) {
  return {quality_metric("rmse", root_mean_square_error(fields.at("target"), indices, outputs[0]))};
}

double root_mean_square_error(const Tensor& field, std::span<const std::int64_t> indices,
                              const Tensor& output) {
  return std::sqrt(mean_of_differences(field, indices, output, [](double d) { return d * d; }));
}

double mean_absolute_error(const Tensor& field, std::span<const std::int64_t> indices, const Tensor& output) {
  return mean_of_differences(field, indices, output, [](double d) { return std::abs(d); });
}

}  // namespace superstep::workload
