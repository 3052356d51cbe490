#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/spread.h"

namespace superstep::workload {
namespace {

constexpr std::size_t worst_rows = 8;
constexpr int error_bins = 41;

std::string with_unit(const std::string& text, const Regression& regression) {
  return regression.unit.empty() ? text : text + ", " + regression.unit;
}

page::Plot found_against_true(const Regression& r) {
  page::Plot plot{.title = fmt::format("{}: predicted against true", r.quantity),
                  .x_label = with_unit("true", r),
                  .y_label = with_unit("predicted", r),
                  .series = {}};
  double low = INFINITY, high = -INFINITY;
  for (const double value : r.truth) low = std::min(low, value), high = std::max(high, value);
  plot.series.push_back(
      {.label = fmt::format("{} samples", format_count(static_cast<double>(r.truth.size()))),
       .x = r.truth,
       .y = r.found,
       .style = page::Series::Style::points});
  if (low <= high) plot.series.push_back({.label = "equal", .x = {low, high}, .y = {low, high}});
  return plot;
}

std::vector<double> errors_of(const Regression& r) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < r.truth.size(); ++i) errors.push_back(r.found[i] - r.truth[i]);
  return errors;
}

page::Plot error_distribution(const Regression& r, const std::vector<double>& errors) {
  double reach = 0;
  for (const double error : errors)
    if (std::isfinite(error)) reach = std::max(reach, std::abs(error));
  page::Plot plot{.title = "Errors",
                  .x_label = with_unit("predicted - true", r),
                  .y_label = "samples",
                  .series = {page::histogram("", errors, -reach, reach, error_bins)}};
  plot.vertical.push_back({0, ""});
  return plot;
}

void add_worst(page::Page& page, const Regression& r, const std::vector<double>& errors) {
  std::vector<double> distances;
  for (const double error : errors) distances.push_back(std::abs(error));
  std::vector<std::vector<std::string>> rows;
  for (const Chosen& chosen : best_median_worst(distances, worst_rows))
    if (std::string_view(chosen.why) == "worst")
      rows.push_back({std::to_string(r.samples[chosen.at]), fmt::format("{:.4g}", r.truth[chosen.at]),
                      fmt::format("{:.4g}", r.found[chosen.at]), fmt::format("{:+.4g}", errors[chosen.at])});
  std::ranges::reverse(rows);  // the worst first
  page.begin_column().heading("The worst", 3);
  page.table({"sample", with_unit("true", r), with_unit("predicted", r), "error"}, rows).end_column();
}

// Errors by the tenths of the stated spread, beside the line on which it would be right, and what it is worth
// in numbers.
void add_spread(page::Page& page, const Regression& r, const std::vector<double>& errors) {
  const auto found = calibrate_spread(errors, r.spread);
  if (!found) return;
  std::vector<double> stated, met;
  for (const SpreadCalibration::Part& part : found->parts) {
    stated.push_back(part.spread);
    met.push_back(part.error);
  }
  const double most = *std::ranges::max_element(stated);
  page.heading("How sure it was", 3).begin_row();
  page.plot(
      {.title = "Errors by tenths of the spread",
       .x_label = with_unit("spread of the passes", r),
       .y_label = with_unit("root mean square error", r),
       .series = {
           {.label = "a tenth of the samples", .x = stated, .y = met, .style = page::Series::Style::points},
           {.label = "equal", .x = {0, most}, .y = {0, most}}}});
  page.table({"spread and errors", ""},
             {{"errors within the spread (normal: 68.3 %)", fmt::format("{:.1f} %", 100 * found->inside_one)},
              {"within twice the spread (normal: 95.4 %)", fmt::format("{:.1f} %", 100 * found->inside_two)},
              {"the spread is too small by the factor", fmt::format("{:.2f}", found->factor)},
              {"rank correlation of |error| and spread", fmt::format("{:.3f}", found->rank_correlation)},
              {fmt::format("within {:.2f} times the spread (half of the samples say so: 90 % of the others)",
                           found->times_for_90),
               fmt::format("{:.1f} %", 100 * found->inside_90)}});
  page.end_row();
}

}  // namespace

void present_regression(page::Page& page, const Regression& regression) {
  const std::vector<double> errors = errors_of(regression);
  page.begin_row().plot(found_against_true(regression)).plot(error_distribution(regression, errors));
  add_worst(page, regression, errors);
  page.end_row();
  add_spread(page, regression, errors);
}

}  // namespace superstep::workload
