#include "superstep/baseline/chemistry/uno_ridge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/chemistry/hill_fit.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/csv.h"
#include "superstep/file/source/array_file.h"

namespace superstep::baseline {
namespace {

Eigen::MatrixXd matrix_of(const data::ArrayFile& file, const char* name, std::int64_t rows) {
  const std::int64_t any[] = {rows, -1};
  const Tensor read = file.read(name, ElementType::f64, any);
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(read.as<double>().data(), read.shape()[0], read.shape()[1]);
}

void impute_means(Eigen::MatrixXd& table) {
  for (Eigen::Index c = 0; c < table.cols(); ++c) {
    double sum = 0;
    Eigen::Index known = 0;
    for (Eigen::Index r = 0; r < table.rows(); ++r)
      if (std::isfinite(table(r, c))) sum += table(r, c), ++known;
    for (Eigen::Index r = 0; r < table.rows(); ++r)
      if (!std::isfinite(table(r, c))) table(r, c) = known > 0 ? sum / static_cast<double>(known) : 0;
  }
}

std::vector<int> indices_of(const data::ArrayFile& file, const char* name, std::int64_t rows,
                            Eigen::Index limit) {
  const std::int64_t one[] = {rows};
  const Tensor read = file.read(name, ElementType::i64, one);
  std::vector<int> indices;
  for (std::int64_t i = 0; i < rows; ++i) {
    if (!(read.at(i) >= 0 && read.at(i) < static_cast<double>(limit)))
      throw Error(ErrorCode::bad_file,
                  fmt::format("data set '{}' points outside its table at row {}", name, i),
                  file.path().string());
    indices.push_back(static_cast<int>(read.at(i)));
  }
  return indices;
}

std::vector<double> values_of(const data::ArrayFile& file, const char* name, std::int64_t rows) {
  const std::int64_t one[] = {rows};
  const Tensor read = file.read(name, ElementType::f64, one);
  return {read.as<double>().begin(), read.as<double>().end()};
}

// Rows of one part of the data: seen cells and drugs in other pairs, or cells never seen.
struct Split {
  std::vector<std::size_t> training, pairs, unseen_cells;
};

Split split_rows(const UnoRows& rows, std::size_t most) {
  Split split;
  for (std::size_t i = 0; i < rows.auc.size(); ++i) {
    if (is_held_out(fmt::format("cell {}", rows.cell[i]), 8))
      split.unseen_cells.push_back(i);
    else if (is_held_out(fmt::format("pair {} {}", rows.cell[i], rows.drug[i]), 5))
      split.pairs.push_back(i);
    else
      split.training.push_back(i);
  }
  for (auto* part : {&split.training, &split.pairs, &split.unseen_cells})
    part->resize(std::min(part->size(), most));
  return split;
}

std::vector<double> picked(const std::vector<double>& values, const std::vector<std::size_t>& part) {
  std::vector<double> result;
  for (const std::size_t i : part) result.push_back(values[i]);
  return result;
}

std::vector<double> as_vector(const Eigen::VectorXd& values) { return {values.begin(), values.end()}; }

std::vector<double> ridge(const Eigen::MatrixXd& x, const std::vector<double>& y,
                          const Eigen::MatrixXd& others) {
  constexpr double strength = 1e-3;
  if (others.rows() == 0) return {};
  const Eigen::Map<const Eigen::VectorXd> known(y.data(), static_cast<Eigen::Index>(y.size()));
  return as_vector(fit_ridge(x, known, strength).predict_all(others));
}

struct Predictions {
  std::vector<double> pairs, unseen_cells;
};

// Both parts at once: the method is fitted once.
template <class Method>
Predictions predict_parts(const Split& split, Method method) {
  std::vector<std::size_t> others = split.pairs;
  others.insert(others.end(), split.unseen_cells.begin(), split.unseen_cells.end());
  const std::vector<double> all = method(split.training, others);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(split.pairs.size());
  return {{all.begin(), middle}, {middle, all.end()}};
}

void append(Report& report, TextTable& table, const std::string& method, const std::string& prefix,
            const UnoRows& rows, const Split& split, const Predictions& predictions) {
  const auto add = [&](const std::string& where, const std::string& name,
                       const std::vector<std::size_t>& part, const std::vector<double>& predicted) {
    if (part.empty()) return;
    const RegressionScore result = score(picked(rows.auc, part), predicted);
    report.metrics.push_back({prefix + name + "mse", result.rmse * result.rmse, ""});
    append_metrics(report.metrics, prefix + name, result, "");
    table.add_row({method, where, fmt::format("{:.5f}", result.rmse * result.rmse),
                   fmt::format("{:.4f}", result.mae), fmt::format("{:.3f}", result.r2),
                   fmt::format("{:.3f}", result.pearson)});
  };
  add("other pairs", "", split.pairs, predictions.pairs);
  add("unseen cells", "unseen_cell_", split.unseen_cells, predictions.unseen_cells);
}

// Error of the area under fitted curves, where the file has curves and the exact area.
void append_hill_fits(Report& report, const UnoRows& rows) {
  constexpr Eigen::Index most = 2000;
  const Eigen::Index count = std::min(most, rows.viability.rows()), doses = rows.viability.cols();
  if (doses < 4 || rows.auc_exact.empty() || count == 0) return;
  std::vector<double> x, area;
  for (Eigen::Index k = 0; k < doses; ++k)
    x.push_back(-10 + 6.0 * static_cast<double>(k) / static_cast<double>(doses - 1));
  const Stopwatch watch;
  for (Eigen::Index i = 0; i < count; ++i)
    area.push_back(data::area_under_curve(fit_hill(x, as_vector(rows.viability.row(i)))));
  const double seconds = watch.seconds();
  const RegressionScore result =
      score(std::span(rows.auc_exact).first(static_cast<std::size_t>(count)), area);
  report.metrics.push_back({"hill_fit_rmse", result.rmse, ""});
  report.metrics.push_back({"hill_fit_throughput", static_cast<double>(count) / seconds, "samples/s"});
  report.text += fmt::format("Hill fits of {} curves: area off by {:.4f} (RMS), {:.0f} curves/s\n", count,
                             result.rmse, static_cast<double>(count) / seconds);
}

void write_predictions(const std::filesystem::path& path, const UnoRows& rows, const Split& split,
                       const Predictions& additive, const Predictions& products) {
  data::CsvWriter file(path, {"Sample", "Drug1", "AUC", "additive", "products"});
  for (std::size_t i = 0; i < split.pairs.size(); ++i) {
    file.cell(rows.cell[split.pairs[i]]).cell(rows.drug[split.pairs[i]]).cell(rows.auc[split.pairs[i]]);
    file.cell(additive.pairs[i]).cell(products.pairs[i]);
    file.end_row();
  }
  file.close();
}

Report run(const Request& request, const Options& options) {
  const UnoRows rows = read_uno(request.input);
  const Split split = split_rows(rows, static_cast<std::size_t>(options.integer("rows", 10, 10000000)));
  if (split.training.empty() || split.pairs.empty())
    throw Error(ErrorCode::bad_file, "too few rows to fit and to hold some out", request.input.string());
  const int count = static_cast<int>(options.integer("components", 1, 500));
  const Stopwatch watch;
  const UnoMethods methods(rows, count);
  const Predictions additive = predict_parts(
      split, [&](const auto& known, const auto& others) { return methods.additive(known, others); });
  const Predictions products = predict_parts(
      split, [&](const auto& known, const auto& others) { return methods.products(known, others); });
  const double fit_time = watch.seconds();
  const TreeSettings trees{.trees = static_cast<int>(options.integer("trees", 1, 100000)),
                           .threads = request.pool->threads()};
  const Predictions boosted = predict_parts(
      split, [&](const auto& known, const auto& others) { return methods.trees(known, others, trees); });
  if (!request.output.empty()) write_predictions(request.output, rows, split, additive, products);
  Report report;
  TextTable table({"method", "on", "MSE", "MAE", "r2", "Pearson"});
  append(report, table, "ridge, additive", "floor_", rows, split, additive);
  append(report, table, "ridge with products", "", rows, split, products);
  append(report, table, "boosted trees", "trees_", rows, split, boosted);
  if (!rows.auc_exact.empty()) {
    const RegressionScore ceiling = score(picked(rows.auc, split.pairs), picked(rows.auc_exact, split.pairs));
    report.metrics.push_back({"ceiling_r2", ceiling.r2, ""});
    table.add_row({"without noise", "other pairs", fmt::format("{:.5f}", ceiling.rmse * ceiling.rmse),
                   fmt::format("{:.4f}", ceiling.mae), fmt::format("{:.3f}", ceiling.r2),
                   fmt::format("{:.3f}", ceiling.pearson)});
  }
  report.metrics.push_back({"fit_time", fit_time, "s"});
  report.text = table.to_string();
  append_hill_fits(report, rows);
  return report;
}

}  // namespace

UnoRows read_uno(const std::filesystem::path& path, bool labels_required, bool viability) {
  const data::ArrayFile file(path);
  UnoRows rows;
  const bool tables = file.contains("cell_rnaseq") || !file.contains("cell");
  rows.cells = matrix_of(file, tables ? "cell_rnaseq" : "cell", -1);
  rows.drugs = matrix_of(file, tables ? "drug_descriptors" : "drug", tables ? -1 : rows.cells.rows());
  impute_means(rows.cells);
  impute_means(rows.drugs);
  const std::int64_t any[] = {-1};
  const std::int64_t count = tables ? file.require_shape("cell_index", any).shape[0] : rows.cells.rows();
  if (tables) {
    rows.cell = indices_of(file, "cell_index", count, rows.cells.rows());
    rows.drug = indices_of(file, "drug_index", count, rows.drugs.rows());
  } else {
    rows.cell.resize(static_cast<std::size_t>(count));
    std::iota(rows.cell.begin(), rows.cell.end(), 0);
    rows.drug = rows.cell;
  }
  if (labels_required || file.contains("AUC")) rows.auc = values_of(file, "AUC", count);
  if (file.contains("AUC_exact")) rows.auc_exact = values_of(file, "AUC_exact", count);
  if (viability && file.contains("viability")) rows.viability = matrix_of(file, "viability", count);
  return rows;
}

UnoMethods::UnoMethods(const UnoRows& rows, int components)
    : rows_(rows),
      cells_(leading_components(rows.cells, components)),
      drugs_(leading_components(rows.drugs, components)) {}

Eigen::MatrixXd UnoMethods::side_by_side(const UnoPart& part) const {
  Eigen::MatrixXd x(static_cast<Eigen::Index>(part.size()), cells_.cols() + drugs_.cols());
  for (std::size_t i = 0; i < part.size(); ++i)
    x.row(static_cast<Eigen::Index>(i)) << cells_.row(rows_.cell[part[i]]), drugs_.row(rows_.drug[part[i]]);
  return x;
}

Eigen::MatrixXd UnoMethods::with_products(const UnoPart& part) const {
  const Eigen::MatrixXd additive = side_by_side(part);
  const Eigen::Index cells = cells_.cols(), drugs = drugs_.cols();
  Eigen::MatrixXd x(additive.rows(), additive.cols() + cells * drugs);
  x.leftCols(additive.cols()) = additive;
  for (Eigen::Index c = 0; c < cells; ++c)
    x.middleCols(additive.cols() + c * drugs, drugs) =
        additive.rightCols(drugs).array().colwise() * additive.col(c).array();
  return x;
}

std::vector<double> UnoMethods::additive(const UnoPart& known, const UnoPart& others) const {
  return ridge(side_by_side(known), picked(rows_.auc, known), side_by_side(others));
}

std::vector<double> UnoMethods::products(const UnoPart& known, const UnoPart& others) const {
  return ridge(with_products(known), picked(rows_.auc, known), with_products(others));
}

std::vector<double> UnoMethods::trees(const UnoPart& known, const UnoPart& others,
                                      const TreeSettings& settings) const {
  return fit_trees(side_by_side(known).cast<float>(), picked(rows_.auc, known),
                   side_by_side(others).cast<float>(), settings);
}

Eigen::MatrixXd leading_components(const Eigen::MatrixXd& table, int count) {
  constexpr int iterations = 8, spare = 8;
  const Eigen::RowVectorXd mean = table.colwise().mean();
  Eigen::MatrixXd z = table.rowwise() - mean;
  for (Eigen::Index c = 0; c < z.cols(); ++c) {
    const double sd = std::sqrt(z.col(c).squaredNorm() / static_cast<double>(z.rows()));
    z.col(c) *= sd > 1e-9 * (1 + std::abs(mean[c])) ? 1 / sd : 0;
  }
  const Eigen::Index kept = std::min<Eigen::Index>({count, z.rows(), z.cols()});
  const Eigen::Index width = std::min<Eigen::Index>({count + spare, z.rows(), z.cols()});
  RandomStream random(1);
  Eigen::MatrixXd basis(z.rows(), width);
  for (double& value : basis.reshaped()) value = random.normal();
  for (int i = 0; i < iterations; ++i) {
    const Eigen::MatrixXd image = z * (z.transpose() * basis);
    basis = Eigen::HouseholderQR<Eigen::MatrixXd>(image).householderQ() *
            Eigen::MatrixXd::Identity(z.rows(), width);
  }
  // Turned so that the columns are in the order of their variance.
  const Eigen::MatrixXd projected = z.transpose() * basis;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(projected.transpose() * projected);
  const Eigen::MatrixXd turned = basis * solver.eigenvectors().rowwise().reverse();
  return turned.leftCols(kept) * std::sqrt(static_cast<double>(z.rows()));
}

Entry uno_baseline() {
  return {"uno",
          "ridge on leading components, additive and with products; boosted trees; Hill fits of curves",
          {{"components", "24", "leading components of each table"},
           {"trees", "400", "boosted on the same components"},
           {"rows", "20000", "at most so many rows are fitted to"}},
          run};
}

}  // namespace superstep::baseline
