#include "superstep/baseline/regression.h"

#include <cmath>
#include <cstdint>

#include "superstep/base/error.h"

namespace superstep::baseline {

RegressionScore score(std::span<const double> measured, std::span<const double> predicted) {
  if (measured.empty() || measured.size() != predicted.size())
    throw Error(ErrorCode::invalid_argument, "there is nothing to score", "held-out part",
                "give more samples, so that some can be held out");
  const auto n = static_cast<Eigen::Index>(measured.size());
  const Eigen::Map<const Eigen::ArrayXd> y(measured.data(), n), p(predicted.data(), n);
  const Eigen::ArrayXd dy = y - y.mean(), dp = p - p.mean();
  const double spread = dy.square().sum(), both = std::sqrt(spread * dp.square().sum());
  RegressionScore result;
  result.mae = (y - p).abs().mean();
  result.rmse = std::sqrt((y - p).square().mean());
  result.r2 = spread > 0 ? 1 - (y - p).square().sum() / spread : 0;
  result.pearson = both > 0 ? (dy * dp).sum() / both : 0;
  return result;
}

void append_metrics(std::vector<Metric>& metrics, const std::string& prefix, const RegressionScore& score,
                    const std::string& unit) {
  metrics.push_back({prefix + "mae", score.mae, unit});
  metrics.push_back({prefix + "rmse", score.rmse, unit});
  metrics.push_back({prefix + "r2", score.r2, ""});
  metrics.push_back({prefix + "pearson", score.pearson, ""});
}

Eigen::VectorXd LinearModel::predict_all(const Eigen::MatrixXd& x) const {
  return (x * weights).array() + intercept;
}

LinearModel fit_ridge(const Eigen::MatrixXd& x, const Eigen::VectorXd& y, double strength) {
  const auto rows = static_cast<double>(x.rows());
  const Eigen::RowVectorXd middle = x.colwise().mean();
  Eigen::MatrixXd z = x.rowwise() - middle;
  Eigen::VectorXd scale = (z.colwise().squaredNorm() / rows).cwiseSqrt().transpose();
  // A column of equal values differs from its mean by rounding alone.
  for (Eigen::Index c = 0; c < scale.size(); ++c)
    scale[c] = scale[c] > 1e-12 * (1 + std::abs(middle[c])) ? 1 / scale[c] : 0;
  z *= scale.asDiagonal();
  const Eigen::VectorXd target = y.array() - y.mean();
  const double penalty = strength * rows + 1e-10 * rows;  // the least that keeps collinear columns solvable
  Eigen::VectorXd weights;
  if (z.cols() <= z.rows()) {
    Eigen::MatrixXd gram = z.transpose() * z;
    gram.diagonal().array() += penalty;
    weights = gram.ldlt().solve(z.transpose() * target);
  } else {
    Eigen::MatrixXd gram = z * z.transpose();
    gram.diagonal().array() += penalty;
    weights = z.transpose() * gram.ldlt().solve(target);
  }
  weights = weights.cwiseProduct(scale);
  return {weights, y.mean() - middle.dot(weights)};
}

int fold_of(std::string_view group, int folds) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a, then the finaliser of splitmix64
  for (const char c : group) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return static_cast<int>((hash ^ (hash >> 31)) % static_cast<std::uint64_t>(folds));
}

bool is_held_out(std::string_view group, int one_in) { return fold_of(group, one_in) == 0; }

}  // namespace superstep::baseline
