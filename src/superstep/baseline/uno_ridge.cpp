#include "superstep/baseline/uno_ridge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/hill_fit.h"
#include "superstep/baseline/regression.h"
#include "superstep/baseline/trees.h"
#include "superstep/data/csv.h"
#include "superstep/data/hdf5.h"

namespace superstep::baseline {
namespace {

Eigen::MatrixXd matrix_of(const data::Hdf5File& file, const char* name, std::int64_t rows) {
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

std::vector<int> indices_of(const data::Hdf5File& file, const char* name, std::int64_t rows,
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

std::vector<double> values_of(const data::Hdf5File& file, const char* name, std::int64_t rows) {
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

struct Components {
  Eigen::MatrixXd cells, drugs;
};

Eigen::MatrixXd additive_features(const UnoRows& rows, const Components& components,
                                  const std::vector<std::size_t>& part) {
  Eigen::MatrixXd x(static_cast<Eigen::Index>(part.size()),
                    components.cells.cols() + components.drugs.cols());
  for (std::size_t i = 0; i < part.size(); ++i)
    x.row(static_cast<Eigen::Index>(i)) << components.cells.row(rows.cell[part[i]]),
        components.drugs.row(rows.drug[part[i]]);
  return x;
}

Eigen::MatrixXd product_features(const UnoRows& rows, const Components& components,
                                 const std::vector<std::size_t>& part) {
  const Eigen::MatrixXd additive = additive_features(rows, components, part);
  const Eigen::Index cells = components.cells.cols(), drugs = components.drugs.cols();
  Eigen::MatrixXd x(additive.rows(), additive.cols() + cells * drugs);
  x.leftCols(additive.cols()) = additive;
  for (Eigen::Index c = 0; c < cells; ++c)
    x.middleCols(additive.cols() + c * drugs, drugs) =
        additive.rightCols(drugs).array().colwise() * additive.col(c).array();
  return x;
}

std::vector<double> picked(const std::vector<double>& values, const std::vector<std::size_t>& part) {
  std::vector<double> result;
  for (const std::size_t i : part) result.push_back(values[i]);
  return result;
}

std::vector<double> as_vector(const Eigen::VectorXd& values) { return {values.begin(), values.end()}; }

using Features = Eigen::MatrixXd (*)(const UnoRows&, const Components&, const std::vector<std::size_t>&);

struct Predictions {
  std::vector<double> pairs, unseen_cells;
};

Predictions fit_and_predict(const UnoRows& rows, const Components& components, const Split& split,
                            Features features) {
  constexpr double strength = 1e-3;
  const std::vector<double> y = picked(rows.auc, split.training);
  const LinearModel model =
      fit_ridge(features(rows, components, split.training),
                Eigen::Map<const Eigen::VectorXd>(y.data(), static_cast<Eigen::Index>(y.size())), strength);
  Predictions made{as_vector(model.predict_all(features(rows, components, split.pairs))), {}};
  if (!split.unseen_cells.empty())
    made.unseen_cells = as_vector(model.predict_all(features(rows, components, split.unseen_cells)));
  return made;
}

Predictions grow_and_predict(const UnoRows& rows, const Components& components, const Split& split,
                             const TreeSettings& settings) {
  const auto features = [&](const std::vector<std::size_t>& part) -> TreeFeatures {
    return additive_features(rows, components, part).cast<float>();
  };
  // Both parts at once: the trees are grown once.
  std::vector<std::size_t> others = split.pairs;
  others.insert(others.end(), split.unseen_cells.begin(), split.unseen_cells.end());
  const std::vector<double> all =
      fit_trees(features(split.training), picked(rows.auc, split.training), features(others), settings);
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
    throw Error(ErrorCode::invalid_argument, "too few rows to fit and to hold some out",
                request.input.string());
  const int count = static_cast<int>(options.integer("components", 1, 500));
  const Stopwatch watch;
  const Components components{leading_components(rows.cells, count), leading_components(rows.drugs, count)};
  const Predictions additive = fit_and_predict(rows, components, split, additive_features);
  const Predictions products = fit_and_predict(rows, components, split, product_features);
  const double fit_time = watch.seconds();
  const TreeSettings trees{.trees = static_cast<int>(options.integer("trees", 1, 100000)),
                           .threads = request.pool->threads()};
  const Predictions boosted = grow_and_predict(rows, components, split, trees);
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

UnoRows read_uno(const std::filesystem::path& path) {
  const data::Hdf5File file(path);
  UnoRows rows;
  rows.cells = matrix_of(file, "cell_rnaseq", -1);
  rows.drugs = matrix_of(file, "drug_descriptors", -1);
  impute_means(rows.cells);
  impute_means(rows.drugs);
  const std::int64_t any[] = {-1};
  const std::int64_t count = file.require_shape("AUC", any).shape[0];
  rows.cell = indices_of(file, "cell_index", count, rows.cells.rows());
  rows.drug = indices_of(file, "drug_index", count, rows.drugs.rows());
  rows.auc = values_of(file, "AUC", count);
  if (file.contains("AUC_exact")) rows.auc_exact = values_of(file, "AUC_exact", count);
  if (file.contains("viability")) rows.viability = matrix_of(file, "viability", count);
  return rows;
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
