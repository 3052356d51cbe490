// Rows of single doses: which cell, which drugs, how much of them. Features are in tables that rows point
// into, brought to mean 0 and variance 1 over their table, as published; where there is no second drug its
// features are 0 and its dose the lowest there is (chosen here).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/baseline/chemistry/uno_ridge.h"
#include "superstep/baseline/regression.h"
#include "superstep/baseline/trees.h"
#include "superstep/file/check.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/chemistry/uno_tables.h"
#include "superstep/workload/chemistry/uno/dose.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t default_rows = 200000;
constexpr std::size_t most_fitted_rows = 20000;  // that references are fitted to
constexpr int components = 24;                   // of each table, that references see
constexpr const char* table_names[] = {"cell_rnaseq", "drug_descriptors", "drug_fingerprints"};

struct DoseTables {
  Tensor cells, descriptors, fingerprints;  // standardised
  std::string where;
};

// A column that copies the row of a table; of row -1 nothing, zeros.
Column row_of(const char* index, const Tensor& table) {
  const auto copy_row = [table](const Tensor& field, std::int64_t sample, std::span<float> to) {
    const std::int64_t row = field.as<std::int32_t>()[static_cast<std::size_t>(sample)];
    const auto width = static_cast<std::size_t>(table.shape()[1]);
    if (row < 0) {
      std::ranges::fill(to, 0.0f);
      return;
    }
    std::ranges::copy(table.as<float>().subspan(static_cast<std::size_t>(row) * width, width), to.begin());
  };
  return {.field = index, .make = copy_row};
}

// In units of the standard deviation of doses that are drawn evenly over the range.
double standard_dose(double dose) {
  constexpr double middle = (data::lowest_uno_dose + data::highest_uno_dose) / 2;
  constexpr double deviation = (data::highest_uno_dose - data::lowest_uno_dose) / 3.4641016;  // sqrt(12)
  return (dose - middle) / deviation;
}

std::vector<double> values_at(const Tensor& field, std::span<const std::int64_t> indices) {
  std::vector<double> values;
  for (const std::int64_t index : indices) values.push_back(field.at(index));
  return values;
}

std::vector<double> found_growth(const Tensor& output) {
  const auto values = output.as<float>();
  return {values.begin(), values.end()};
}

std::vector<Metric> quality_of_growth(const Fields& fields, std::span<const std::int64_t> indices,
                                      std::span<const Tensor> outputs) {
  const auto found = baseline::score(values_at(fields.at("growth"), indices), found_growth(outputs[0]));
  return {quality_metric("r2", found.r2), quality_metric("mse", found.rmse * found.rmse),
          quality_metric("mae", found.mae)};
}

std::string present_growth(const Fields& fields, const Predictions& found, page::Page& page) {
  present_regression(
      page, {.quantity = "Survival at the doses",
             .unit = "",
             .truth = values_at(fields.at("growth"), found.indices),
             .found = found_growth(found.outputs[0]),
             .samples = {found.indices.begin(), found.indices.end()},
             .spread = found.spread.empty() ? std::vector<double>() : found_growth(found.spread[0])});
  return {};
}

// What references see of rows: leading components of cell and drugs, and both doses.
class DoseRows {
 public:
  explicit DoseRows(const DoseTables& tables)
      : cells_(leading(tables.cells)), drugs_(leading(tables.descriptors)) {}

  Eigen::MatrixXd of(const Fields& fields, std::span<const std::int64_t> indices) const {
    Eigen::MatrixXd x = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(indices.size()),
                                              cells_.cols() + 2 * drugs_.cols() + 2);
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      const std::int64_t row = indices[static_cast<std::size_t>(i)];
      const auto index = [&](const char* name) { return static_cast<int>(fields.at(name).at(row)); };
      x.row(i).head(cells_.cols()) = cells_.row(index("cell_index"));
      x.row(i).segment(cells_.cols(), drugs_.cols()) = drugs_.row(index("drug1_index"));
      if (const int second = index("drug2_index"); second >= 0)
        x.row(i).segment(cells_.cols() + drugs_.cols(), drugs_.cols()) = drugs_.row(second);
      x.row(i).tail(2) << standard_dose(fields.at("dose1").at(row)),
          standard_dose(fields.at("dose2").at(row));
    }
    return x;
  }

 private:
  static Eigen::MatrixXd leading(const Tensor& table) {
    using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const Rows> rows(table.as<float>().data(), table.shape()[0], table.shape()[1]);
    return baseline::leading_components(rows.cast<double>(), components);
  }
  Eigen::MatrixXd cells_, drugs_;
};

// The floor is linear in all it sees; trees know products. Asked is what the noise allows, less 0.05.
References references_of(const TableSamples& samples, const DoseTables& tables) {
  const DoseRows rows(tables);
  std::vector<std::int64_t> known(std::min(static_cast<std::size_t>(samples.training), most_fitted_rows));
  std::iota(known.begin(), known.end(), std::int64_t{0});
  const Tensor& growth = samples.fields.at("growth");
  const std::vector<double> y = values_at(growth, known), truth = values_at(growth, samples.indices);
  const Eigen::MatrixXd x = rows.of(samples.fields, known), others = rows.of(samples.fields, samples.indices);
  const Eigen::Map<const Eigen::VectorXd> target(y.data(), static_cast<Eigen::Index>(y.size()));
  const Eigen::VectorXd linear = baseline::fit_ridge(x, target, 1e-3).predict_all(others);
  const std::vector<double> boosted =
      baseline::fit_trees(x.cast<float>(), y, others.cast<float>(), {.threads = samples.pool.threads()});
  const auto r2 = [&](std::span<const double> found) { return baseline::score(truth, found).r2; };
  const double limit = r2(values_at(samples.fields.at("growth_exact"), samples.indices));
  return {.floor = Reference{"ridge regression", r2(std::vector<double>(linear.begin(), linear.end()))},
          .conventional = Reference{"boosted trees", r2(boosted)},
          .limit = Reference{"the noise of the measurements", limit},
          .target = limit - 0.05};
}

// --- where rows come from

[[noreturn]] void refuse(const std::string& what, const std::string& where) {
  throw Error(ErrorCode::bad_file, what, where, "superstep generate uno --set by=dose writes such files");
}

void require_index(const Fields& fields, const char* name, std::int64_t rows, int least,
                   const std::string& where) {
  const auto values = fields.at(name).as<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] < least || values[i] >= rows)
      refuse(
          fmt::format("data set '{}' points outside its table at row {}: {} of {}", name, i, values[i], rows),
          where);
}

void require_table(const Tensor& table, const char* name, std::int64_t columns, const std::string& where) {
  if (table.shape().rank() != 2 || table.shape()[1] != columns)
    refuse(fmt::format("table '{}' is {}, not [., {}]", name, to_string(table.shape()), columns), where);
}

Fields read_fields(const TaskSettings& settings, const data::ArrayFile& file) {
  const std::pair<const char*, ElementType> wanted[] = {
      {"cell_index", ElementType::i32},  {"drug1_index", ElementType::i32}, {"drug2_index", ElementType::i32},
      {"dose1", ElementType::f32},       {"dose2", ElementType::f32},       {"growth", ElementType::f32},
      {"growth_exact", ElementType::f32}};
  Fields fields;
  std::int64_t rows = -1;
  for (const auto& [name, type] : wanted) {
    const std::string_view label(name);
    const bool needed = !label.starts_with("growth") || (label == "growth" && settings.labels_required);
    if (!needed && !file.contains(name)) continue;
    const std::int64_t extents[] = {rows};
    Tensor read = file.read(name, type, extents);
    if (type == ElementType::f32)
      data::require_finite(read, fmt::format("{}: data set '{}'", settings.data.string(), name));
    rows = read.shape()[0];
    fields.emplace(name, std::move(read));
  }
  return fields;
}

struct DoseData {
  DoseTables tables;
  Fields fields;
};

DoseData dose_data(const TaskSettings& settings) {
  std::map<std::string, Tensor> tables;
  DoseData made;
  if (settings.data.empty()) {
    const std::string by_dose[] = {"by=dose"};
    const auto generator = make_generator("uno", by_dose);
    tables = generator->shared_arrays(settings.seed);
    made.fields = generated_fields(*generator, settings, default_rows);
    made.tables.where = generated_source(settings);
  } else {
    const data::ArrayFile file(settings.data);
    for (const char* name : table_names) tables.emplace(name, file.read(name, ElementType::f32));
    made.fields = read_fields(settings, file);
    made.tables.where = settings.data.string();
  }
  const std::int64_t columns[] = {data::gene_count, data::descriptor_count, data::fingerprint_count};
  for (std::size_t i = 0; i < 3; ++i)
    require_table(tables.at(table_names[i]), table_names[i], columns[i], made.tables.where);
  const std::int64_t drugs = tables.at("drug_descriptors").shape()[0];
  if (tables.at("drug_fingerprints").shape()[0] != drugs)
    refuse("tables 'drug_descriptors' and 'drug_fingerprints' are not of as many drugs", made.tables.where);
  require_index(made.fields, "cell_index", tables.at("cell_rnaseq").shape()[0], 0, made.tables.where);
  require_index(made.fields, "drug1_index", drugs, 0, made.tables.where);
  require_index(made.fields, "drug2_index", drugs, -1, made.tables.where);
  made.tables.cells = standardised_columns(tables.at("cell_rnaseq"));
  made.tables.descriptors = standardised_columns(tables.at("drug_descriptors"));
  made.tables.fingerprints = standardised_columns(tables.at("drug_fingerprints"));
  return made;
}

}  // namespace

Tensor standardised_columns(const Tensor& table) {
  const std::int64_t rows = table.shape()[0], columns = table.shape()[1];
  Tensor result(ElementType::f32, table.shape());
  for (std::int64_t c = 0; c < columns; ++c) {
    double sum = 0, squares = 0, count = 0;
    for (std::int64_t r = 0; r < rows; ++r)
      if (const double value = table.at(r * columns + c); std::isfinite(value)) sum += value, ++count;
    const double mean = count > 0 ? sum / count : 0;
    for (std::int64_t r = 0; r < rows; ++r)
      if (const double value = table.at(r * columns + c); std::isfinite(value))
        squares += (value - mean) * (value - mean);
    const double deviation = count > 0 ? std::sqrt(squares / count) : 0;
    const bool varies = deviation > 1e-6 * (1 + std::abs(mean));
    for (std::int64_t r = 0; r < rows; ++r) {
      const double value = table.at(r * columns + c);
      result.set(r * columns + c, varies && std::isfinite(value) ? (value - mean) / deviation : 0);
    }
  }
  return result;
}

std::unique_ptr<Task> open_uno_dose(const TaskSettings& settings) {
  DoseData made = dose_data(settings);
  const auto tables = std::make_shared<const DoseTables>(std::move(made.tables));
  TableSpec spec{
      .generator = "uno",
      .settings = {"by=dose"},
      .inputs = {row_of("cell_index", tables->cells),
                 row_of("drug1_index", tables->descriptors),
                 row_of("drug2_index", tables->descriptors),
                 row_of("drug1_index", tables->fingerprints),
                 row_of("drug2_index", tables->fingerprints),
                 {"dose1", standard_dose},
                 {"dose2", standard_dose}},
      .targets = {{"growth"}},
      .more = {},
      .quality = quality_of_growth,
      .spread_of = "growth",
      .present = present_growth,
      .references = [tables](const TableSamples& samples) { return references_of(samples, *tables); },
      .reference_seconds = 20,
      .reference_fields = {"growth_exact"}};
  return open_table_task(std::move(spec), std::move(made.fields), settings);
}

}  // namespace superstep::workload
