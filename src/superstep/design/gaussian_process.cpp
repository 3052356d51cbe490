#include "superstep/design/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/design/matern.h"
#include "superstep/design/minimise.h"

namespace superstep::design {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Eigensystem = Eigen::SelfAdjointEigenSolver<MatrixXd>;

constexpr std::uint32_t start_stream = 0x6770;  // purpose of the random numbers that starts are drawn from

VectorXd vector_of(const std::vector<double>& values) {
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
}

// Rounding leaves the eigenvalues of a positive definite matrix negative by as little as this.
VectorXd not_negative(const VectorXd& eigenvalues) { return eigenvalues.cwiseMax(0); }

// Where the likelihood is looked for, as natural logarithms. Lengths below a twentieth of a range would see
// each trial alone; above 20 ranges a setting changes nothing. Noise below 1e-4 of the curves' spread is no
// noise.
std::vector<Bounds> parameter_bounds(Index settings, Index points) {
  const auto between = [](double low, double high) { return Bounds{std::log(low), std::log(high)}; };
  std::vector<Bounds> bounds{between(1e-2, 1e3)};
  for (Index d = 0; d < settings; ++d) bounds.push_back(between(0.05, 20));
  bounds.push_back(between(0.02, 5));
  bounds.push_back(between(0.2, 10.0 * static_cast<double>(std::max<Index>(points, 2))));
  bounds.push_back(between(1e-8, 1));
  bounds.push_back(between(1e-8, 1));
  return bounds;
}

std::vector<double> start_of(const std::vector<Bounds>& bounds, Index settings, std::uint64_t seed,
                             int start) {
  if (start == 0) {
    Hyperparameters usual;
    usual.lengths.assign(static_cast<std::size_t>(settings), 1);
    return packed(usual);
  }
  RandomStream random(seed, static_cast<std::uint64_t>(start), start_stream);
  std::vector<double> at;
  for (const Bounds& bound : bounds) at.push_back(random.uniform(bound.low, bound.high));
  return at;
}

// What a likelihood and its slope are made of.
struct Spectrum {
  MatrixXd kernel, curve_kernel;  // K with its variance, B with delta
  Eigensystem over_settings, over_points;
  VectorXd d, l;       // their eigenvalues
  MatrixXd precision;  // 1 / (d_i l_k + noise)
  MatrixXd solved;     // (K (x) B + noise I)^-1 curves, [N, E]
};

Spectrum spectrum(const CurveData& data, const Hyperparameters& parameters) {
  Spectrum s;
  s.kernel = parameters.variance * matern(data.settings, data.settings, vector_of(parameters.lengths));
  s.curve_kernel = parameters.curve.smooth(data.curves.cols());
  s.curve_kernel.diagonal().array() += parameters.curve.delta;
  s.over_settings.compute(s.kernel);
  s.over_points.compute(s.curve_kernel);
  s.d = not_negative(s.over_settings.eigenvalues());
  s.l = not_negative(s.over_points.eigenvalues());
  s.precision = ((s.d * s.l.transpose()).array() + parameters.noise).inverse();
  const MatrixXd &v = s.over_settings.eigenvectors(), &u = s.over_points.eigenvectors();
  s.solved = v * (v.transpose() * data.curves * u).cwiseProduct(s.precision) * u.transpose();
  return s;
}

// The slope by K and by B as matrices: d log p = sum(by_K * dK) + sum(by_B * dB).
void write_slope(const CurveData& data, const Hyperparameters& parameters, const Spectrum& s,
                 std::span<double> slope) {
  const Index n = data.settings.cols(), points = data.curves.cols();
  const MatrixXd &v = s.over_settings.eigenvectors(), &u = s.over_points.eigenvectors();
  const VectorXd trace_k = s.precision * s.l, trace_b = s.precision.transpose() * s.d;
  const MatrixXd by_k =
      0.5 * (s.solved * s.curve_kernel * s.solved.transpose() - v * trace_k.asDiagonal() * v.transpose());
  const MatrixXd by_b =
      0.5 * (s.solved.transpose() * s.kernel * s.solved - u * trace_b.asDiagonal() * u.transpose());
  const VectorXd lengths = vector_of(parameters.lengths);
  std::size_t at = 0;
  slope[at++] = by_k.cwiseProduct(s.kernel).sum();
  for (Index d = 0; d < n; ++d)
    slope[at++] = parameters.variance *
                  by_k.cwiseProduct(matern_by_length(data.settings, data.settings, lengths, d)).sum();
  slope[at++] = by_b.cwiseProduct(parameters.curve.by_log_length(points)).sum();
  slope[at++] = by_b.cwiseProduct(parameters.curve.by_log_decay(points)).sum();
  slope[at++] = by_b.trace() * parameters.curve.delta;
  slope[at++] = 0.5 * (s.solved.squaredNorm() - s.precision.sum()) * parameters.noise;
}

}  // namespace

std::vector<double> packed(const Hyperparameters& parameters) {
  std::vector<double> logarithms{std::log(parameters.variance)};
  for (double length : parameters.lengths) logarithms.push_back(std::log(length));
  for (double value :
       {parameters.curve.length, parameters.curve.decay, parameters.curve.delta, parameters.noise})
    logarithms.push_back(std::log(value));
  return logarithms;
}

Hyperparameters unpacked(std::span<const double> logarithms) {
  Hyperparameters parameters;
  const std::size_t lengths = logarithms.size() - 5;
  parameters.variance = std::exp(logarithms[0]);
  for (std::size_t d = 0; d < lengths; ++d) parameters.lengths.push_back(std::exp(logarithms[1 + d]));
  const std::span<const double> rest = logarithms.subspan(1 + lengths);
  parameters.curve = {std::exp(rest[0]), std::exp(rest[1]), std::exp(rest[2])};
  parameters.noise = std::exp(rest[3]);
  return parameters;
}

CurveData standardised(const MatrixXd& settings, const MatrixXd& measured) {
  CurveData data;
  data.settings = settings;
  data.mean = measured.colwise().mean();
  data.curves = measured.rowwise() - data.mean.transpose();
  const double spread = std::sqrt(data.curves.squaredNorm() / static_cast<double>(measured.size()));
  data.scale = spread > 0 ? spread : 1;
  data.curves /= data.scale;
  return data;
}

double log_marginal(const CurveData& data, const Hyperparameters& parameters, std::span<double> slope) {
  const Spectrum s = spectrum(data, parameters);
  const double count = static_cast<double>(data.curves.size());
  const double misfit = s.solved.cwiseProduct(data.curves).sum();
  const double log_determinant = -s.precision.array().log().sum();
  if (!slope.empty()) write_slope(data, parameters, s, slope);
  return -0.5 * (misfit + log_determinant + count * std::log(2 * std::numbers::pi));
}

Fit fit_parameters(const CurveData& data, std::uint64_t seed, int starts, ThreadPool& pool) {
  const Index settings = data.settings.cols();
  const std::vector<Bounds> bounds = parameter_bounds(settings, data.curves.cols());
  const auto loss = [&](std::span<const double> at, std::span<double> slope) {
    const double value = log_marginal(data, unpacked(at), slope);
    for (double& part : slope) part = -part;
    return -value;
  };
  std::vector<Minimum> minima(static_cast<std::size_t>(starts));
  pool.parallel_for(starts, [&](std::int64_t k, int) {
    minima[static_cast<std::size_t>(k)] =
        minimise(loss, bounds, start_of(bounds, settings, seed, static_cast<int>(k)));
  });
  const auto best = std::ranges::min_element(minima, {}, &Minimum::value);
  Fit fit{unpacked(best->at), -best->value, 0};
  for (const Minimum& minimum : minima) fit.evaluations += minimum.evaluations;
  return fit;
}

CurvePosterior::CurvePosterior(CurveData data, Hyperparameters parameters)
    : data_(std::move(data)), parameters_(std::move(parameters)), lengths_(vector_of(parameters_.lengths)) {
  const Index points = data_.curves.cols();
  const Eigensystem over_points(parameters_.curve.smooth(points));
  const VectorXd smooth = not_negative(over_points.eigenvalues());  // ascending
  // What rounding leaves of the eigenvalues of a smooth kernel.
  const double rounding = 1e-13 * smooth[points - 1] * static_cast<double>(points);
  Index beyond = 0;
  while (beyond < points && smooth[beyond] <= rounding) ++beyond;
  const MatrixXd kernel = matern(data_.settings, data_.settings, lengths_);
  const auto add = [&](Index first, Index count, double eigenvalue) {
    Modes modes{
        parameters_.variance * eigenvalue, over_points.eigenvectors().middleCols(first, count), {}, {}};
    MatrixXd covariance = modes.amplitude * kernel;
    covariance.diagonal().array() += parameters_.noise;
    modes.factor.compute(covariance);
    if (modes.factor.info() != Eigen::Success)
      throw Error(ErrorCode::diverged, "the covariance of the trials is not positive definite");
    modes.weights = modes.factor.solve(data_.curves * modes.basis);
    modes_.push_back(std::move(modes));
  };
  if (beyond > 0) add(0, beyond, parameters_.curve.delta);
  for (Index k = beyond; k < points; ++k) add(k, 1, smooth[k] + parameters_.curve.delta);
}

CurvePosterior::Prediction CurvePosterior::predict(const VectorXd& settings) const {
  const MatrixXd k = matern(data_.settings, settings.transpose(), lengths_);  // [N, 1]
  VectorXd mean = VectorXd::Zero(data_.mean.size()), variance = mean;
  for (const Modes& modes : modes_) {
    const VectorXd c = modes.amplitude * k.col(0);
    mean += modes.basis * (modes.weights.transpose() * c);
    const double left = std::max(0.0, modes.amplitude - c.dot(modes.factor.solve(c)));
    variance += left * modes.basis.cwiseAbs2().rowwise().sum();
  }
  const VectorXd measured = data_.mean + data_.scale * mean;
  const VectorXd deviation = data_.scale * variance.cwiseSqrt();
  return {{measured.begin(), measured.end()}, {deviation.begin(), deviation.end()}};
}

int effective_rank(const CurveData& data, double noise) {
  const double n = static_cast<double>(data.curves.rows()), e = static_cast<double>(data.curves.cols());
  const double edge = std::sqrt(noise) * (std::sqrt(n) + std::sqrt(e));
  const Eigen::JacobiSVD<MatrixXd> svd(data.curves);
  return static_cast<int>((svd.singularValues().array() > edge).count());
}

}  // namespace superstep::design
