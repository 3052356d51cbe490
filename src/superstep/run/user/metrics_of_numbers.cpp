#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/run/user/metric_families.h"

namespace superstep::run {
namespace {

using transform::LossKind;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

std::int64_t row_of(const Tensor& rows) {
  return rows.element_count() / std::max<std::int64_t>(1, rows.shape().rank() == 0 ? 1 : rows.shape()[0]);
}

double counted(const Compared& c, std::size_t sample, std::int64_t k) {
  return c.mask ? c.mask->at(c.at[sample] * row_of(*c.mask) + k) : 1;
}

// Poisson's output is the logarithm of what is compared.
double found(const Compared& c, std::int64_t place) {
  const double y = c.output.at(place);
  return c.term.kind == LossKind::poisson_nll ? std::exp(y) : y;
}

// Minus the logarithm of the likelihood, without the constants that PyTorch's losses leave out, too.
double unlikeliness(const Compared& c, std::int64_t place, double truth) {
  const double y = c.output.at(place);
  if (c.term.kind == LossKind::poisson_nll) return std::exp(y) - truth * y;
  const double v = std::max(c.variance->at(place), 1e-6);
  return (std::log(v) + (y - truth) * (y - truth) / v) / 2;
}

template <class Visit>
void for_each(const Compared& c, Visit visit) {
  const std::int64_t row = row_of(c.truth);
  for (std::size_t i = 0; i < c.at.size(); ++i)
    for (std::int64_t k = 0; k < row; ++k)
      if (const double weight = counted(c, i, k); weight != 0)
        visit(static_cast<std::int64_t>(i) * row + k, k, c.truth.at(c.at[i] * row + k), weight);
}

// Sums over all elements. Those of R2 are about the mean of each element of a sample, as scikit-learn has it
// with multioutput="variance_weighted".
struct Sums {
  double weight = 0, squares = 0, distances = 0, shares = 0, largest = 0, unlikeliness = 0;
  double y = 0, t = 0, yy = 0, tt = 0, yt = 0;
};

Sums sums_of(const Compared& c, bool likelihood) {
  Sums s;
  for_each(c, [&](std::int64_t place, std::int64_t, double t, double w) {
    const double y = found(c, place), away = y - t;
    s.weight += w, s.squares += w * away * away, s.distances += w * std::abs(away);
    s.shares += w * std::abs(away) / std::max(std::abs(t), std::numeric_limits<double>::epsilon());
    if (!std::isnan(s.largest) && !(std::abs(away) <= s.largest)) s.largest = std::abs(away);
    s.y += w * y, s.t += w * t, s.yy += w * y * y, s.tt += w * t * t, s.yt += w * y * t;
    if (likelihood) s.unlikeliness += w * unlikeliness(c, place, t);
  });
  return s;
}

double r_squared(const Compared& c, double squares) {
  const auto row = static_cast<std::size_t>(row_of(c.truth));
  std::vector<double> weights(row), means(row);
  for_each(c, [&](std::int64_t, std::int64_t k, double t, double w) {
    weights[static_cast<std::size_t>(k)] += w, means[static_cast<std::size_t>(k)] += w * t;
  });
  for (std::size_t k = 0; k < row; ++k)
    if (weights[k] > 0) means[k] /= weights[k];
  double spread = 0;
  for_each(c, [&](std::int64_t, std::int64_t k, double t, double w) {
    const double away = t - means[static_cast<std::size_t>(k)];
    spread += w * away * away;
  });
  return spread > 0 ? 1 - squares / spread : none;
}

double pearson(const Sums& s) {
  const double covariance = s.yt - s.y * s.t / s.weight;
  const double spread = (s.yy - s.y * s.y / s.weight) * (s.tt - s.t * s.t / s.weight);
  return spread > 0 ? covariance / std::sqrt(spread) : none;
}

double metric(const std::string& name, const Compared& c, const Sums& s) {
  if (s.weight == 0) return none;
  if (name == "rmse") return std::sqrt(s.squares / s.weight);
  if (name == "mae") return s.distances / s.weight;
  if (name == "r2") return r_squared(c, s.squares);
  if (name == "max_error") return s.largest;
  if (name == "mape") return s.shares / s.weight;
  if (name == "pearson") return pearson(s);
  return s.unlikeliness / s.weight;
}

}  // namespace

std::vector<double> measure_numbers(std::span<const std::string> names, const Compared& compared) {
  const bool likelihood = std::ranges::find(names, "nll") != names.end();
  const Sums sums = sums_of(compared, likelihood);
  std::vector<double> values;
  for (const std::string& name : names) values.push_back(metric(name, compared, sums));
  return values;
}

double kl_divergence(const Compared& c) {
  const std::int64_t row = row_of(c.truth);
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < c.at.size(); ++i) {
    const double weight = counted(c, i, 0);
    weights += weight;
    for (std::int64_t k = 0; k < row && weight != 0; ++k)
      if (const double t = c.truth.at(c.at[i] * row + k); t > 0)
        sum += weight * t * (std::log(t) - c.output.at(static_cast<std::int64_t>(i) * row + k));
  }
  return weights > 0 ? sum / weights : none;
}

// Along axis 1: places of a sample behind it have a direction each.
double cosine_similarity(const Compared& c) {
  const std::int64_t row = row_of(c.truth), length = c.truth.shape().rank() > 1 ? c.truth.shape()[1] : 1;
  const std::int64_t places = row / std::max<std::int64_t>(1, length);
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < c.at.size(); ++i)
    for (std::int64_t place = 0; place < places; ++place) {
      const double weight = counted(c, i, place);
      double yt = 0, yy = 0, tt = 0;
      for (std::int64_t k = 0; k < length && weight != 0; ++k) {
        const std::int64_t within = k * places + place;
        const double y = c.output.at(static_cast<std::int64_t>(i) * row + within);
        const double t = c.truth.at(c.at[i] * row + within);
        yt += y * t, yy += y * y, tt += t * t;
      }
      weights += weight;
      if (weight != 0) sum += weight * yt / (std::max(std::sqrt(yy), 1e-8) * std::max(std::sqrt(tt), 1e-8));
    }
  return weights > 0 ? sum / weights : none;
}

}  // namespace superstep::run
