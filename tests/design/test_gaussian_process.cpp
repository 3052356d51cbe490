// The process against dense algebra: every formula that uses its structure, held against one that does not.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "superstep/base/random.h"
#include "superstep/design/acquisition.h"
#include "superstep/design/gaussian_process.h"
#include "superstep/design/matern.h"

namespace superstep::design {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd random_matrix(Index rows, Index columns, std::uint64_t seed) {
  RandomStream random(seed);
  MatrixXd matrix(rows, columns);
  for (double& value : matrix.reshaped()) value = random.uniform();
  return matrix;
}

CurveData example(Index trials = 9, Index settings = 3, Index points = 6) {
  const MatrixXd x = random_matrix(trials, settings, 1);
  MatrixXd curves(trials, points);
  for (Index i = 0; i < trials; ++i)
    for (Index e = 0; e < points; ++e)
      curves(i, e) = std::sin(3 * x(i, 0)) + x(i, 1) * std::exp(-static_cast<double>(e)) +
                     0.02 * std::cos(17.0 * (i + 3 * e));
  return standardised(x, curves);
}

Hyperparameters parameters() { return {1.3, {0.7, 1.1, 2.5}, {0.6, 1.7, 0.02}, 0.03}; }

VectorXd lengths_of(const Hyperparameters& p) {
  return Eigen::Map<const VectorXd>(p.lengths.data(), static_cast<Index>(p.lengths.size()));
}

// A (x) B, with the points of a curve beside each other.
MatrixXd kronecker(const MatrixXd& a, const MatrixXd& b) {
  MatrixXd product(a.rows() * b.rows(), a.cols() * b.cols());
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j)
      product.block(i * b.rows(), j * b.cols(), b.rows(), b.cols()) = a(i, j) * b;
  return product;
}

MatrixXd output_kernel(const Hyperparameters& p, Index points) {
  return p.curve.smooth(points) + p.curve.delta * MatrixXd::Identity(points, points);
}

MatrixXd dense(const Hyperparameters& p, const MatrixXd& a, const MatrixXd& b, Index points) {
  return kronecker(p.variance * matern(a, b, lengths_of(p)), output_kernel(p, points));
}

MatrixXd with_noise(MatrixXd covariance, double noise) {
  covariance.diagonal().array() += noise;
  return covariance;
}

VectorXd stacked(const CurveData& data) { return MatrixXd(data.curves.transpose()).reshaped(); }

TEST(Matern, IsTheClosedFormAndItsSlopes) {
  const MatrixXd a{{0.1, 0.2}}, b{{0.4, 0.7}};
  const VectorXd lengths{{0.5, 2.0}};
  const double r = std::hypot(0.3 / 0.5, 0.5 / 2.0), s = std::sqrt(5.0) * r;
  EXPECT_NEAR(matern(a, b, lengths)(0, 0), (1 + s + s * s / 3) * std::exp(-s), 1e-15);
  EXPECT_EQ(matern(a, a, lengths)(0, 0), 1);
  for (Index d = 0; d < 2; ++d) {
    const double h = 1e-6;
    VectorXd up = lengths, down = lengths;
    up[d] *= std::exp(h), down[d] *= std::exp(-h);
    EXPECT_NEAR(matern_by_length(a, b, lengths, d)(0, 0),
                (matern(a, b, up)(0, 0) - matern(a, b, down)(0, 0)) / (2 * h), 1e-8);
    MatrixXd right = a, left = a;
    right(0, d) += h, left(0, d) -= h;
    EXPECT_NEAR(matern_by_point(a.row(0), b, lengths)(0, d),
                (matern(right, b, lengths)(0, 0) - matern(left, b, lengths)(0, 0)) / (2 * h), 1e-8);
  }
}

TEST(CurveKernel, HasALowRankWhereCurvesRelaxAndAFullOneWhereTheyDoNot) {
  const auto rank = [](const CurveKernel& kernel) {
    const VectorXd values = Eigen::SelfAdjointEigenSolver<MatrixXd>(kernel.smooth(50)).eigenvalues();
    return (values.array() > 1e-3 * values.maxCoeff()).count();
  };
  EXPECT_LE(rank({0.5, 1, 0}), 3);
  EXPECT_GE(rank({0.05, 500, 0}), 15);
}

TEST(GaussianProcess, MarginalLikelihoodIsThatOfTheDenseCovariance) {
  const CurveData data = example();
  const Hyperparameters p = parameters();
  const MatrixXd covariance = with_noise(dense(p, data.settings, data.settings, data.curves.cols()), p.noise);
  const Eigen::LLT<MatrixXd> factor(covariance);
  const VectorXd y = stacked(data);
  const double log_determinant = 2 * MatrixXd(factor.matrixL()).diagonal().array().log().sum();
  const double expected = -0.5 * (y.dot(factor.solve(y)) + log_determinant +
                                  static_cast<double>(y.size()) * std::log(2 * std::numbers::pi));
  EXPECT_NEAR(log_marginal(data, p), expected, 1e-9);
}

TEST(GaussianProcess, SlopeOfTheLikelihoodIsExact) {
  const CurveData data = example();
  std::vector<double> at = packed(parameters()), slope(at.size());
  const double value = log_marginal(data, unpacked(at), slope);
  EXPECT_TRUE(std::isfinite(value));
  for (std::size_t k = 0; k < at.size(); ++k) {
    const double h = 1e-5, before = at[k];
    at[k] = before + h;
    const double above = log_marginal(data, unpacked(at));
    at[k] = before - h;
    const double below = log_marginal(data, unpacked(at));
    at[k] = before;
    const double difference = (above - below) / (2 * h);
    EXPECT_NEAR(slope[k], difference, 1e-6 * (1 + std::abs(difference))) << k;
    // A slope off by a thousandth is told from it.
    EXPECT_GT(std::abs(1.001 * slope[k] - difference), 1e-5 * std::abs(difference)) << k;
  }
}

TEST(GaussianProcess, PredictionIsThatOfTheDenseCovariance) {
  const CurveData data = example();
  const Hyperparameters p = parameters();
  const Index points = data.curves.cols();
  const CurvePosterior posterior(data, p);
  const MatrixXd x{{0.3, 0.8, 0.5}};
  const Eigen::LLT<MatrixXd> factor(with_noise(dense(p, data.settings, data.settings, points), p.noise));
  const MatrixXd cross = dense(p, x, data.settings, points);
  const VectorXd mean = cross * factor.solve(stacked(data));
  const MatrixXd covariance = dense(p, x, x, points) - cross * factor.solve(cross.transpose());
  const auto prediction = posterior.predict(x.row(0));
  for (Index e = 0; e < points; ++e) {
    const auto at = static_cast<std::size_t>(e);
    EXPECT_NEAR(prediction.mean[at], data.mean[e] + data.scale * mean[e], 1e-10);
    EXPECT_NEAR(prediction.deviation[at], data.scale * std::sqrt(covariance(e, e)), 1e-10);
  }
}

TEST(GaussianProcess, FindsNoiseAndLengthsItsCurvesWereDrawnWith) {
  // Curves drawn from the process itself: the first setting matters, the second hardly.
  Hyperparameters truth{1, {0.4, 10}, {0.5, 2, 1e-3}, 0.01};
  const MatrixXd x = random_matrix(40, 2, 5);
  const MatrixXd covariance = with_noise(dense(truth, x, x, 8), truth.noise);
  RandomStream random(7);
  VectorXd white(covariance.rows());
  for (double& value : white) value = random.normal();
  const VectorXd drawn = Eigen::LLT<MatrixXd>(covariance).matrixL() * white;
  const CurveData data = standardised(x, drawn.reshaped(8, 40).transpose());
  ThreadPool one(1), two(2);
  const Fit fit = fit_parameters(data, 1, 4, two);
  EXPECT_NEAR(fit.parameters.noise * data.scale * data.scale, 0.01, 0.003);
  EXPECT_GT(fit.parameters.lengths[1], 5 * fit.parameters.lengths[0]);
  EXPECT_GE(fit.log_marginal, log_marginal(data, truth));
  EXPECT_EQ(packed(fit_parameters(data, 1, 4, one).parameters), packed(fit.parameters))
      << "on any number of threads";
}

// L as the paper writes it, with dense matrices.
double dense_acquisition(const CurveData& data, const Hyperparameters& p, const VectorXd& target,
                         const MatrixXd& x, const MatrixXd& x2) {
  const Index points = data.curves.cols();
  const Eigen::LLT<MatrixXd> k11(with_noise(dense(p, data.settings, data.settings, points), p.noise));
  const MatrixXd k1 = dense(p, x, data.settings, points), k21 = dense(p, x2, data.settings, points);
  const VectorXd mean = k1 * k11.solve(stacked(data));
  const MatrixXd q = with_noise(dense(p, x, x, points) - k1 * k11.solve(k1.transpose()), p.noise);
  const MatrixXd c = dense(p, x, x2, points) - k1 * k11.solve(k21.transpose());
  const MatrixXd q2 = with_noise(dense(p, x2, x2, points) - k21 * k11.solve(k21.transpose()), p.noise);
  const MatrixXd t = c * q2.llt().solve(c.transpose());
  const Eigen::LLT<MatrixXd> left(q - t);
  const VectorXd off = (target - data.mean) / data.scale - mean;
  return -MatrixXd(left.matrixL()).diagonal().array().log().sum() - 0.5 * off.dot(left.solve(off)) -
         0.5 * left.solve(t).trace();
}

TEST(Acquisition, IsTheFormulaOfThePaper) {
  const CurveData data = example();
  const CurvePosterior posterior(data, parameters());
  const VectorXd target = data.mean + VectorXd::LinSpaced(6, 0.3, -0.1);
  const MatrixXd x{{0.3, 0.8, 0.5}}, x2 = random_matrix(4, 3, 9);
  EXPECT_NEAR(Acquisition(posterior, target)(x.row(0), x2),
              dense_acquisition(data, parameters(), target, x, x2), 1e-8);
}

TEST(Acquisition, IsTheSameWhereModesShareAnEigenvalue) {
  const CurveData data = example(9, 3, 20);
  Hyperparameters p = parameters();
  p.curve = {1.5, 0.4, 0.05};
  const CurvePosterior posterior(data, p);
  EXPECT_LT(posterior.modes().size(), 12U);
  const VectorXd target = data.mean + VectorXd::LinSpaced(20, 0.3, -0.1);
  const MatrixXd x{{0.3, 0.8, 0.5}}, x2 = random_matrix(4, 3, 9);
  EXPECT_NEAR(Acquisition(posterior, target)(x.row(0), x2), dense_acquisition(data, p, target, x, x2), 1e-7);
}

TEST(Acquisition, SlopeIsExact) {
  const CurveData data = example();
  const CurvePosterior posterior(data, parameters());
  const Acquisition acquisition(posterior, data.mean + VectorXd::LinSpaced(6, 0.3, -0.1));
  VectorXd x{{0.3, 0.8, 0.5}};
  MatrixXd x2 = random_matrix(4, 3, 9);
  Acquisition::Slope slope;
  acquisition(x, x2, &slope);
  const auto difference = [&](double& moved) {
    const double h = 1e-5, before = moved;
    moved = before + h;
    const double above = acquisition(x, x2);
    moved = before - h;
    const double below = acquisition(x, x2);
    moved = before;
    return (above - below) / (2 * h);
  };
  for (Index d = 0; d < 3; ++d) {
    const double expected = difference(x[d]);
    EXPECT_NEAR(slope.by_point[d], expected, 1e-6 * (1 + std::abs(expected)));
    EXPECT_GT(std::abs(1.001 * slope.by_point[d] - expected), 1e-4 * std::abs(expected));
    for (Index j = 0; j < 4; ++j)
      EXPECT_NEAR(slope.by_batch(j, d), difference(x2(j, d)), 1e-6 * (1 + std::abs(slope.by_batch(j, d))))
          << j;
  }
}

// An expectation of a logarithm is at most the logarithm of the expectation, which is L without trials
// (Jensen): trials that tell of the curve at x make it surer and the target, on average, no likelier.
TEST(Acquisition, IsAtMostThatWithoutTrialsAndTheSameWithOnesThatTellNothing) {
  const CurveData data = example();
  Hyperparameters p = parameters();
  p.lengths = {0.1, 0.1, 0.1};
  const CurvePosterior posterior(data, p);
  const Acquisition acquisition(posterior, data.mean + VectorXd::LinSpaced(6, 0.3, -0.1));
  const VectorXd x{{0.5, 0.5, 0.5}};
  const double alone = acquisition(x, MatrixXd(0, 3));
  EXPECT_LT(acquisition(x, MatrixXd{{0.5, 0.5, 0.52}}), alone - 0.1);
  EXPECT_LT(acquisition(x, MatrixXd{{0.5, 0.5, 0.60}}), alone);
  EXPECT_NEAR(acquisition(x, MatrixXd{{40.0, 40.0, 40.0}}), alone, 1e-9);
}

TEST(Acquisition, ProposalIsTheSameOnAnyNumberOfThreadsAndNoWorseThanItsStarts) {
  const CurveData data = example();
  const CurvePosterior posterior(data, parameters());
  const Acquisition acquisition(posterior, data.mean + VectorXd::LinSpaced(6, 0.3, -0.1));
  ThreadPool one(1), three(3);
  const Proposal a = propose(acquisition, data.settings, 4, 5, 4, one);
  const Proposal b = propose(acquisition, data.settings, 4, 5, 4, three);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.batch, b.batch);
  EXPECT_NEAR(acquisition(a.point, a.batch), a.value, 1e-12);
  for (Index i = 0; i < data.settings.rows(); ++i)
    EXPECT_GE(a.value,
              acquisition(data.settings.row(i), random_matrix(4, 3, 20 + static_cast<std::uint64_t>(i))));
}

}  // namespace
}  // namespace superstep::design
