// Regression by decision trees (XGBoost), boosted one after another or grown side by side as a random forest:
// what tabular data are given when nothing is known about them.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <span>
#include <vector>

namespace superstep::baseline {

struct TreeSettings {
  enum class Kind { boosted, forest } kind = Kind::boosted;
  int trees = 400;
  int depth = 6;
  double learning_rate = 0.1;  // boosted only
  double rows_a_tree = 0.8;    // share of the rows a tree sees
  double columns_a_split = 1;  // share of the columns a split may use
  std::uint32_t seed = 1;
  int threads = 1;
};

// L. Breiman, Machine Learning 45, 5 (2001): deep trees on bootstrap-sized samples, a third of the columns a
// split.
TreeSettings random_forest(int threads);

using TreeFeatures = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;  // rows: samples

// Fits to (x, y) by squared error and predicts `others`; NaN features count as missing. The same bits for the
// same settings. Throws Error (invalid_argument) when sizes disagree, there is no row, or a y is not finite.
std::vector<double> fit_trees(const TreeFeatures& x, std::span<const double> y, const TreeFeatures& others,
                              const TreeSettings& settings);

}  // namespace superstep::baseline
