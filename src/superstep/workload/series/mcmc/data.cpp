#include <fmt/format.h>

#include <cmath>

#include "superstep/file/check.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/returns.h"
#include "superstep/workload/series/mcmc/mcmc.h"

namespace superstep::workload {
namespace {

using data::lag_count;

std::string lag_name(int lag) { return fmt::format("lag_{}", lag); }

Tensor column_of(const std::vector<float>& values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
}

// Rows out of the returns themselves.
Fields rows_of_returns(data::CsvReader& table) {
  const std::size_t column = table.column("return");
  std::vector<float> returns, x, y;
  while (table.next()) returns.push_back(static_cast<float>(table.number(column)));
  for (std::size_t t = lag_count; t < returns.size(); ++t) {
    for (std::size_t lag = 1; lag <= lag_count; ++lag) x.push_back(returns[t - lag]);
    y.push_back(returns[t]);
  }
  Fields fields;
  fields.emplace("y", column_of(y));
  fields.emplace("x", Tensor::from<float>({static_cast<std::int64_t>(y.size()), lag_count}, x));
  return fields;
}

Fields read_table(const std::filesystem::path& path) {
  data::CsvReader table(path);
  if (table.has_column("return")) return rows_of_returns(table);
  std::vector<std::size_t> lags;
  for (int lag = 1; lag <= lag_count; ++lag) lags.push_back(table.column(lag_name(lag)));
  const std::size_t next = table.column("y");
  const bool has_model = table.has_column("expected") && table.has_column("deviation");
  std::vector<float> x, y, expected, deviation;
  std::vector<std::int64_t> series;
  while (table.next()) {
    for (const std::size_t column : lags) x.push_back(static_cast<float>(table.number(column)));
    y.push_back(static_cast<float>(table.number(next)));
    series.push_back(table.has_column("series") ? table.integer(table.column("series")) : 0);
    if (!has_model) continue;
    expected.push_back(static_cast<float>(table.number(table.column("expected"))));
    deviation.push_back(static_cast<float>(table.number(table.column("deviation"))));
  }
  const auto rows = static_cast<std::int64_t>(y.size());
  Fields fields;
  fields.emplace("x", Tensor::from<float>({rows, lag_count}, x));
  fields.emplace("y", column_of(y));
  fields.emplace("series", Tensor::from<std::int64_t>({rows}, series));
  if (has_model) fields.emplace("expected", column_of(expected));
  if (has_model) fields.emplace("deviation", column_of(deviation));
  return fields;
}

Fields read_arrays(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const std::int64_t lags[] = {-1, lag_count};
  Fields fields;
  fields.emplace("x", file.read("x", ElementType::f32, lags));
  const std::int64_t rows[] = {fields.at("x").shape()[0]};
  fields.emplace("y", file.read("y", ElementType::f32, rows));
  for (const char* name : {"expected", "deviation"})
    if (file.contains(name)) fields.emplace(name, file.read(name, ElementType::f32, rows));
  if (file.contains("series")) fields.emplace("series", file.read("series", ElementType::i64, rows));
  return fields;
}

Fields read_file(const std::filesystem::path& path) {
  Fields fields = data::is_text(path, {".csv", ".tsv"}) ? read_table(path) : read_arrays(path);
  for (const char* name : {"x", "y", "expected", "deviation"})
    if (fields.contains(name)) data::require_finite(fields.at(name), data::place(path, name));
  return fields;
}

// One series that is long enough.
Fields generate(const TaskSettings& settings, std::int64_t rows) {
  const std::vector<std::string> one_series = {fmt::format("rows={}", rows)};
  TaskSettings all = settings;
  all.samples = rows;
  return generated_fields(*make_generator("mcmc", one_series), all, rows);
}

Tensor rows_of(const Tensor& field, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> extents = field.shape().extents();
  const std::size_t row = field.byte_count() / static_cast<std::size_t>(extents[0]);
  extents[0] = count;
  Tensor rows(field.type(), Shape(extents));
  std::copy_n(field.bytes() + static_cast<std::size_t>(first) * row, static_cast<std::size_t>(count) * row,
              rows.bytes());
  return rows;
}

void require_one_series(const Fields& fields, const ReturnWindow& window, const std::string& where) {
  if (!fields.contains("series")) return;
  const Tensor& series = fields.at("series");
  for (std::int64_t i = 1; i < series.element_count(); ++i)
    if (series.at(i) != series.at(0))
      throw Error(ErrorCode::bad_file,
                  fmt::format("rows {} to {} are of series {} and {}", window.first,
                              window.first + series.element_count() - 1, series.at(0), series.at(i)),
                  where, "a window is of one series: choose --set first, window and ahead so that it is");
}

void scale(Tensor& values, double centre, double deviation) {
  for (float& value : values.as<float>())
    value = static_cast<float>((static_cast<double>(value) - centre) / deviation);
}

// All by mean and deviation of the window's y, which its lags have but for 22 rows.
void standardise(Fields& fields, std::int64_t rows) {
  const auto y = fields.at("y").as<float>().first(static_cast<std::size_t>(rows));
  double mean = 0, squares = 0;
  for (const float value : y) mean += static_cast<double>(value) / static_cast<double>(rows);
  for (const float value : y)
    squares += std::pow(static_cast<double>(value) - mean, 2) / static_cast<double>(rows);
  const double deviation = squares > 0 ? std::sqrt(squares) : 1;
  for (const char* name : {"x", "y", "expected"})
    if (fields.contains(name)) scale(fields.at(name), mean, deviation);
  if (fields.contains("deviation")) scale(fields.at("deviation"), 0, deviation);
  fields.emplace("scale", Tensor::from<double>({1}, {deviation}));
}

}  // namespace

Fields read_returns(const TaskSettings& settings, const ReturnWindow& window) {
  const std::string where = settings.data.empty() ? "mcmc" : settings.data.string();
  std::int64_t wanted = window.rows + window.ahead;
  if (settings.samples > 0) wanted = std::min(wanted, settings.samples);
  Fields all = settings.data.empty() ? generate(settings, window.first + wanted) : read_file(settings.data);
  const std::int64_t there = all.at("y").element_count() - window.first;
  // Forecasts may be fewer: of the last rows of a file.
  const std::int64_t rows = std::min(there, wanted);
  if (rows < window.rows)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("has {} rows from row {} on, a window takes {}", std::max<std::int64_t>(0, rows),
                            window.first, window.rows),
                where, "set a smaller window: --set window=N");
  Fields fields;
  for (const auto& [name, field] : all) fields.emplace(name, rows_of(field, window.first, rows));
  require_one_series(fields, window, where);
  standardise(fields, window.rows);
  return fields;
}

}  // namespace superstep::workload
