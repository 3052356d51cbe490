// Drug response by ridge regression on the leading components of expression and descriptors: once additive
// (an effect of the cell plus one of the drug), once with products of both.
#pragma once

#include <Eigen/Dense>
#include <filesystem>
#include <vector>

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

struct UnoRows {
  Eigen::MatrixXd cells, drugs;        // tables, rows first
  std::vector<int> cell, drug;         // of each row
  std::vector<double> auc, auc_exact;  // auc_exact is empty where the file has none
  Eigen::MatrixXd viability;           // [rows, doses]; no columns where the file has none
};
// An HDF5 file with cell_rnaseq, drug_descriptors, cell_index, drug_index and AUC. Missing values of the
// tables (NaN) become the column's mean. Throws Error that names the data set.
UnoRows read_uno(const std::filesystem::path& path);

// Coordinates of the rows along the `count` directions of largest variance of the standardised columns,
// scaled to variance 1: by subspace iteration, begun from fixed random numbers.
Eigen::MatrixXd leading_components(const Eigen::MatrixXd& table, int count);

Entry uno_baseline();

}  // namespace superstep::baseline
