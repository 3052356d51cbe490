#include "superstep/design/acquisition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/design/latin_hypercube.h"
#include "superstep/design/matern.h"
#include "superstep/design/minimise.h"

namespace superstep::design {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::uint32_t hypercube_stream = 0x6163, scatter_stream = 0x6164;  // purposes of random numbers
constexpr int candidates = 256;      // of the hypercube that starts are taken from: chosen
constexpr double scatter = 0.15;     // of x2 around x, in ranges of the settings: chosen
constexpr double least_apart = 0.1;  // of two starts, in ranges of the settings: chosen

// Kernels between the point, the batch and the trials so far, and their slopes; all modes share them.
struct Kernels {
  VectorXd point_trials, point_batch;
  MatrixXd batch_trials, batch_batch;
};

struct SharedSlopes {
  MatrixXd point_trials, point_batch;  // by the point: [N, d], [m, d]
};

// The parts of one group of modes, each multiplied with its amplitude.
struct ModeTerms {
  double v1, t, w;     // variance before and after, with noise: w = v1 - t + noise
  VectorXd a, b1, b2;  // weights of the trials before; of trials and batch after
};

ModeTerms terms(const CurvePosterior::Modes& modes, const Kernels& k, double noise) {
  ModeTerms terms;
  const VectorXd c1 = modes.amplitude * k.point_trials;
  terms.a = modes.factor.solve(c1);
  terms.v1 = std::max(0.0, modes.amplitude - c1.dot(terms.a));
  terms.t = 0, terms.b1 = terms.a;
  if (k.point_batch.size() > 0) {
    const MatrixXd cross = modes.amplitude * k.batch_trials;        // [m, N]
    const MatrixXd solved = modes.factor.solve(cross.transpose());  // [N, m]
    MatrixXd q2 = modes.amplitude * k.batch_batch - cross * solved;
    q2.diagonal().array() += noise;
    const VectorXd c = modes.amplitude * k.point_batch - cross * terms.a;
    terms.b2 = q2.llt().solve(c);
    terms.t = c.dot(terms.b2);
    terms.b1 = terms.a - solved * terms.b2;
  }
  terms.w = std::max(terms.v1 - terms.t, 0.0) + noise;
  return terms;
}

}  // namespace

Acquisition::Acquisition(const CurvePosterior& posterior, const VectorXd& target) : posterior_(posterior) {
  const VectorXd standard = (target - posterior.data().mean) / posterior.data().scale;
  for (const CurvePosterior::Modes& modes : posterior.modes())
    targets_.emplace_back(modes.basis.transpose() * standard);
}

double Acquisition::operator()(const VectorXd& point, const MatrixXd& batch, Slope* slope) const {
  const MatrixXd& tried = posterior_.data().settings;
  const VectorXd& lengths = posterior_.lengths();
  const double noise = posterior_.parameters().noise;
  const Index m = batch.rows(), d = point.size();
  const Kernels k{matern(tried, point.transpose(), lengths).col(0),
                  matern(batch, point.transpose(), lengths).col(0), matern(batch, tried, lengths),
                  matern(batch, batch, lengths)};
  double value = 0;
  // Weights of the kernels' slopes, summed over the modes: of k(x, x1), k(x, x2), k(x2, x1) and k(x2, x2).
  VectorXd by_point_trials = VectorXd::Zero(tried.rows()), by_point_batch = VectorXd::Zero(m);
  MatrixXd by_batch_trials = MatrixXd::Zero(m, tried.rows()), by_batch_batch = MatrixXd::Zero(m, m);
  for (std::size_t g = 0; g < targets_.size(); ++g) {
    const CurvePosterior::Modes& modes = posterior_.modes()[g];
    const ModeTerms at = terms(modes, k, noise);
    const VectorXd residual = targets_[g] - modes.amplitude * modes.weights.transpose() * k.point_trials;
    const double count = static_cast<double>(residual.size()), squares = residual.squaredNorm();
    value -= 0.5 * (count * std::log(at.w) + squares / at.w + count * at.t / at.w);
    if (!slope) continue;
    // L by the variance after all trials (t = v1 - after, w = after + noise), by that before, by the mean.
    const double by_after = 0.5 * ((squares + count * at.t) / at.w - count) / at.w + 0.5 * count / at.w;
    const double by_before = -0.5 * count / at.w;
    const double amplitude = modes.amplitude;
    by_point_trials +=
        amplitude * (modes.weights * residual / at.w - 2 * by_before * at.a - 2 * by_after * at.b1);
    if (m == 0) continue;
    by_point_batch -= 2 * amplitude * by_after * at.b2;
    by_batch_trials += 2 * amplitude * by_after * at.b2 * at.b1.transpose();
    by_batch_batch += 2 * amplitude * by_after * at.b2 * at.b2.transpose();
  }
  if (!slope) return value;
  slope->by_point = matern_by_point(point, tried, lengths).transpose() * by_point_trials;
  slope->by_batch = MatrixXd::Zero(m, d);
  if (m == 0) return value;
  // k depends on the difference of its two points alone: moving the one is moving the other back.
  const MatrixXd to_batch = matern_by_point(point, batch, lengths);
  slope->by_point += to_batch.transpose() * by_point_batch;
  for (Index j = 0; j < m; ++j) {
    const VectorXd at = batch.row(j);
    slope->by_batch.row(j) = -by_point_batch[j] * to_batch.row(j);
    slope->by_batch.row(j) += by_batch_trials.row(j) * matern_by_point(at, tried, lengths);
    slope->by_batch.row(j) += by_batch_batch.row(j) * matern_by_point(at, batch, lengths);
  }
  return value;
}

namespace {

// Settings of large L without further trials, no two close to each other.
std::vector<VectorXd> starting_points(const Acquisition& acquisition, const MatrixXd& tried,
                                      std::uint64_t seed, int starts) {
  const MatrixXd drawn = latin_hypercube(candidates, tried.cols(), seed, hypercube_stream);
  MatrixXd all(tried.rows() + drawn.rows(), tried.cols());
  all << tried, drawn;
  const MatrixXd none(0, tried.cols());
  std::vector<double> values;
  for (Index i = 0; i < all.rows(); ++i) values.push_back(acquisition(all.row(i), none));
  std::vector<Index> order(values.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(order, std::greater{},
                           [&](Index i) { return values[static_cast<std::size_t>(i)]; });
  std::vector<VectorXd> chosen;
  for (Index i : order) {
    const VectorXd point = all.row(i);
    const bool apart = std::ranges::all_of(chosen, [&](const VectorXd& other) {
      return (point - other).lpNorm<Eigen::Infinity>() > least_apart;
    });
    if (apart) chosen.push_back(point);
    if (chosen.size() == static_cast<std::size_t>(starts)) break;
  }
  return chosen;
}

std::vector<double> joint_start(const VectorXd& point, int batch, std::uint64_t seed, std::size_t start) {
  RandomStream random(seed, start, scatter_stream);
  std::vector<double> at(point.begin(), point.end());
  for (int j = 0; j < batch; ++j)
    for (double setting : point) at.push_back(std::clamp(setting + scatter * random.normal(), 0.0, 1.0));
  return at;
}

}  // namespace

Proposal propose(const Acquisition& acquisition, const MatrixXd& tried, int batch, std::uint64_t seed,
                 int starts, ThreadPool& pool) {
  const Index d = tried.cols();
  const auto point_of = [&](std::span<const double> at) -> VectorXd {
    return Eigen::Map<const VectorXd>(at.data(), d);
  };
  const auto batch_of = [&](std::span<const double> at) -> MatrixXd {
    return Eigen::Map<const MatrixXd>(at.data() + d, d, batch).transpose();
  };
  const auto loss = [&](std::span<const double> at, std::span<double> slope) {
    Acquisition::Slope exact;
    const double value = acquisition(point_of(at), batch_of(at), &exact);
    Eigen::Map<VectorXd>(slope.data(), d) = -exact.by_point;
    Eigen::Map<MatrixXd>(slope.data() + d, d, batch) = -exact.by_batch.transpose();
    return -value;
  };
  const std::vector<VectorXd> points = starting_points(acquisition, tried, seed, starts);
  const std::vector<Bounds> bounds(static_cast<std::size_t>(d * (1 + batch)), Bounds{0, 1});
  std::vector<Minimum> minima(points.size());
  pool.parallel_for(static_cast<std::int64_t>(points.size()), [&](std::int64_t k, int) {
    const auto at = static_cast<std::size_t>(k);
    minima[at] = minimise(loss, bounds, joint_start(points[at], batch, seed, at));
  });
  const auto best = std::ranges::min_element(minima, {}, &Minimum::value);
  Proposal proposal{point_of(best->at), batch_of(best->at), -best->value, 0};
  for (const Minimum& minimum : minima) proposal.evaluations += minimum.evaluations;
  return proposal;
}

}  // namespace superstep::design
