#include "superstep/baseline/series/autoregression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/row_writer.h"

namespace superstep::baseline {
namespace {

double deviation_of(double squares, double freedoms) {
  return std::sqrt(std::max(squares / freedoms, 1e-300));
}

ReturnRows read_table(const std::filesystem::path& path) {
  data::CsvReader file(path);
  const std::size_t last = file.column("lag_1"), next = file.column("y");
  const bool has_series = file.has_column("series");
  const bool has_model = file.has_column("expected") && file.has_column("deviation");
  ReturnRows rows;
  while (file.next()) {
    rows.series.push_back(has_series ? file.integer(file.column("series")) : 0);
    rows.last.push_back(file.number(last));
    rows.next.push_back(file.number(next));
    if (!has_model) continue;
    rows.expected.push_back(file.number(file.column("expected")));
    rows.deviation.push_back(file.number(file.column("deviation")));
  }
  return rows;
}

std::vector<double> read_column(const data::ArrayFile& file, const char* name, std::int64_t count) {
  const std::int64_t shape[] = {count};
  const Tensor read = file.read(name, ElementType::f64, shape);
  return {read.as<double>().begin(), read.as<double>().end()};
}

ReturnRows read_hdf5(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const std::int64_t any[] = {-1, -1};
  const Tensor x = file.read("x", ElementType::f64, any);
  const std::int64_t count = x.shape()[0];
  ReturnRows rows;
  for (std::int64_t i = 0; i < count && x.shape()[1] > 0; ++i) rows.last.push_back(x.at(i * x.shape()[1]));
  rows.next = read_column(file, "y", count);
  rows.last.resize(rows.next.size());
  rows.series.assign(rows.next.size(), 0);
  if (file.contains("series")) {
    const std::vector<double> series = read_column(file, "series", count);
    std::ranges::transform(series, rows.series.begin(),
                           [](double s) { return static_cast<std::int64_t>(s); });
  }
  if (file.contains("expected") && file.contains("deviation")) {
    rows.expected = read_column(file, "expected", count);
    rows.deviation = read_column(file, "deviation", count);
  }
  return rows;
}

struct Score {
  double log_density = 0, square = 0;
  void add(const Forecast& forecast, double value) {
    log_density += forecast.log_density(value);
    square += (forecast.mean - value) * (forecast.mean - value);
  }
};

struct Scores {
  Score constant, autoregression, exact;
  std::int64_t count = 0;
};

void add_row(Report& report, TextTable& table, const std::string& method, const std::string& prefix,
             const Score& score, std::int64_t count) {
  const double each = score.log_density / static_cast<double>(count);
  const double rmse = std::sqrt(score.square / static_cast<double>(count));
  report.metrics.push_back({prefix + "log_likelihood", each, "nat"});
  report.metrics.push_back({prefix + "rmse", rmse, ""});
  table.add_row({method, fmt::format("{:.4f}", each), fmt::format("{:.6f}", rmse)});
}

// Every row that has a whole window of its own series before it is forecast.
Scores score_windows(const ReturnRows& rows, std::size_t window, data::CsvWriter* file) {
  Scores scores;
  for (std::size_t row = window; row < rows.next.size(); ++row) {
    const std::size_t first = row - window;
    if (rows.series[first] != rows.series[row]) continue;
    const auto last = std::span(rows.last).subspan(first, window),
               next = std::span(rows.next).subspan(first, window);
    const Forecast forecast = forecast_ar1(last, next, rows.last[row]);
    scores.constant.add(forecast_constant(next), rows.next[row]);
    scores.autoregression.add(forecast, rows.next[row]);
    if (!rows.expected.empty()) scores.exact.add({rows.expected[row], rows.deviation[row]}, rows.next[row]);
    ++scores.count;
    if (file == nullptr) continue;
    file->cell(rows.series[row]).cell(rows.next[row]).cell(forecast.mean).cell(forecast.deviation);
    file->end_row();
  }
  return scores;
}

Report run(const Request& request, const Options& options) {
  const ReturnRows rows = read_returns(request.input);
  const auto window = static_cast<std::size_t>(options.integer("window", 3, 10'000'000));
  std::unique_ptr<data::CsvWriter> file;
  if (!request.output.empty())
    file = std::make_unique<data::CsvWriter>(request.output,
                                             std::vector<std::string>{"series", "y", "mean", "deviation"});
  const Scores scores = score_windows(rows, window, file.get());
  if (scores.count == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no series is longer than a window of {} rows", window), request.input.string(),
                "set a smaller window");
  if (file) file->close();
  Report report;
  TextTable table({"forecast", "log-likelihood nat", "RMSE"});
  add_row(report, table, "constant", "floor_", scores.constant, scores.count);
  add_row(report, table, "AR(1)", "", scores.autoregression, scores.count);
  if (!rows.expected.empty()) add_row(report, table, "true model", "ceiling_", scores.exact, scores.count);
  report.text = table.to_string();
  return report;
}

}  // namespace

double Forecast::log_density(double value) const {
  const double z = (value - mean) / deviation;
  return -0.5 * (z * z + std::log(2 * std::numbers::pi)) - std::log(deviation);
}

Forecast forecast_constant(std::span<const double> next) {
  const double level = mean(next);
  double squares = 0;
  for (const double value : next) squares += (value - level) * (value - level);
  return {level, deviation_of(squares, static_cast<double>(next.size()) - 1)};
}

Forecast forecast_ar1(std::span<const double> last, std::span<const double> next, double now) {
  const double mean_last = mean(last), mean_next = mean(next);
  double both = 0, squares = 0, residual = 0;
  for (std::size_t i = 0; i < last.size(); ++i) {
    both += (last[i] - mean_last) * (next[i] - mean_next);
    squares += (last[i] - mean_last) * (last[i] - mean_last);
  }
  const double slope = squares > 0 ? both / squares : 0;
  for (std::size_t i = 0; i < last.size(); ++i) {
    const double rest = next[i] - mean_next - slope * (last[i] - mean_last);
    residual += rest * rest;
  }
  return {mean_next + slope * (now - mean_last),
          deviation_of(residual, static_cast<double>(last.size()) - 2)};
}

ReturnRows read_returns(const std::filesystem::path& path) {
  return data::is_text(path, {".csv", ".tsv", ".tab", ".txt"}) ? read_table(path) : read_hdf5(path);
}

Entry mcmc_baseline() {
  return {
      "mcmc", "AR(1) by least squares over a sliding window", {{"window", "500", "rows of the window"}}, run};
}

}  // namespace superstep::baseline
