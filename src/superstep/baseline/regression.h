// Linear regression and its scores, as the conventional methods share them.
#pragma once

#include <Eigen/Dense>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/metric.h"

namespace superstep::baseline {

struct RegressionScore {
  double mae = 0, rmse = 0;
  double r2 = 0;       // 1 - residual / variance about the mean of the measured values
  double pearson = 0;  // correlation; 0 when one side does not vary
};
// Both of one length, at least 1. Throws Error (invalid_argument) when there is nothing to score.
RegressionScore score(std::span<const double> measured, std::span<const double> predicted);
// Appends PREFIXmae, PREFIXrmse (in `unit`), PREFIXr2 and PREFIXpearson.
void append_metrics(std::vector<Metric>& metrics, const std::string& prefix, const RegressionScore& score,
                    const std::string& unit);

// y = intercept + w.x with a penalty of strength * rows * |w|^2 on columns scaled to variance 1 (Hoerl and
// Kennard 1970). Columns that do not vary get no weight.
struct LinearModel {
  Eigen::VectorXd weights;
  double intercept = 0;
  double predict(const Eigen::Ref<const Eigen::VectorXd>& x) const { return intercept + weights.dot(x); }
  Eigen::VectorXd predict_all(const Eigen::MatrixXd& x) const;  // rows are samples
};
// x [rows, columns], y [rows]; solved in the smaller of the two dimensions.
LinearModel fit_ridge(const Eigen::MatrixXd& x, const Eigen::VectorXd& y, double strength);

// Which of so many folds a group (a molecule, a cell line) is in, from 0 on: the same for the same name in
// every run.
int fold_of(std::string_view group, int folds);

// Is this group held out? The same answer for the same name in every run: one group in `one_in` is, those of
// fold 0.
bool is_held_out(std::string_view group, int one_in);

}  // namespace superstep::baseline
