// Drug response by ridge regression on the leading components of expression and descriptors: once additive
// (an effect of the cell plus one of the drug), once with products of both.
#pragma once

#include <Eigen/Dense>
#include <filesystem>
#include <vector>

#include "superstep/baseline/baseline.h"
#include "superstep/baseline/trees.h"

namespace superstep::baseline {

struct UnoRows {
  Eigen::MatrixXd cells, drugs;        // tables, rows first
  std::vector<int> cell, drug;         // of each row
  std::vector<double> auc, auc_exact;  // auc_exact is empty where the file has none
  Eigen::MatrixXd viability;           // [rows, doses]; no columns where the file has none
};
// An HDF5 file with cell_rnaseq, drug_descriptors, cell_index, drug_index and AUC; or, where there are no
// tables, with features in every row: cell, drug and AUC. Missing values of the features (NaN) become the
// column's mean. `viability`: also that, which is by far the largest. Throws Error that names the data set.
UnoRows read_uno(const std::filesystem::path& path, bool labels_required = true, bool viability = true);

// Coordinates of the rows along the `count` directions of largest variance of the standardised columns,
// scaled to variance 1: by subspace iteration, begun from fixed random numbers.
Eigen::MatrixXd leading_components(const Eigen::MatrixXd& table, int count);

using UnoPart = std::vector<std::size_t>;  // numbers of rows

// The AUC of the rows `others`, by methods that are fitted to the rows `known`.
class UnoMethods {
 public:
  UnoMethods(const UnoRows& rows, int components);  // of each table; `rows` must outlive this
  std::vector<double> additive(const UnoPart& known, const UnoPart& others) const;
  std::vector<double> products(const UnoPart& known, const UnoPart& others) const;
  std::vector<double> trees(const UnoPart& known, const UnoPart& others, const TreeSettings& settings) const;

 private:
  Eigen::MatrixXd side_by_side(const UnoPart& part) const;
  Eigen::MatrixXd with_products(const UnoPart& part) const;
  const UnoRows& rows_;
  Eigen::MatrixXd cells_, drugs_;  // components
};

Entry uno_baseline();

}  // namespace superstep::baseline
