// The way up to a mode.
#include <cmath>
#include <deque>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/sampling/laplace.h"

namespace superstep::sampling {
namespace {

using Vector = std::vector<double>;

constexpr std::size_t remembered = 12;  // pairs of steps; Nocedal recommends 3 to 20

double product(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void add(Vector& to, double factor, const Vector& what) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * what[i];
}

struct Pair {
  Vector step, change;  // of the position, and of minus the gradient
  double curvature;     // their product, positive
};

// The two loops of Nocedal (1980): about the inverse curvature times the gradient.
Vector uphill(const std::deque<Pair>& pairs, Vector gradient) {
  std::vector<double> shares(pairs.size());
  for (std::size_t k = pairs.size(); k-- > 0;) {
    shares[k] = product(pairs[k].step, gradient) / pairs[k].curvature;
    add(gradient, -shares[k], pairs[k].change);
  }
  if (!pairs.empty())
    for (double& g : gradient)
      g *= pairs.back().curvature / product(pairs.back().change, pairs.back().change);
  for (std::size_t k = 0; k < pairs.size(); ++k)
    add(gradient, shares[k] - product(pairs[k].change, gradient) / pairs[k].curvature, pairs[k].step);
  return gradient;
}

}  // namespace

Mode find_mode(LogDensity& density, std::span<const double> start, int most_evaluations) {
  constexpr double enough = 1e-4;  // of what the slope promises (Armijo's rule)
  constexpr double least_gain = 1e-9, shortest = 1e-12;
  Mode mode{.position = {start.begin(), start.end()}};
  Vector gradient(start.size()), next_gradient(start.size());
  mode.log_density = density.evaluate(mode.position, gradient);
  mode.evaluations = 1;
  if (!std::isfinite(mode.log_density))
    throw Error(ErrorCode::diverged, "the search for a mode starts where there is no density");
  std::deque<Pair> pairs;
  int idle = 0;
  while (mode.evaluations < most_evaluations && idle < 5) {
    Vector direction = uphill(pairs, gradient);
    double slope = product(direction, gradient);
    if (!(slope > 0)) pairs.clear(), direction = gradient, slope = product(gradient, gradient);
    if (!(slope > 0)) break;
    double length = pairs.empty() ? std::min(1.0, 1 / std::sqrt(slope)) : 1;
    Vector next;
    double value = 0;
    for (; mode.evaluations < most_evaluations; length /= 2) {
      next = mode.position;
      add(next, length, direction);
      value = density.evaluate(next, next_gradient);
      ++mode.evaluations;
      if (value >= mode.log_density + enough * length * slope || length < shortest) break;
    }
    if (!(value > mode.log_density)) {
      if (pairs.empty()) break;
      pairs.clear();  // once more, straight up
      ++idle;
      continue;
    }
    idle = value - mode.log_density < least_gain * (1 + std::abs(value)) ? idle + 1 : 0;
    Pair pair{next, gradient, 0};
    add(pair.step, -1, mode.position);
    add(pair.change, -1, next_gradient);
    pair.curvature = product(pair.step, pair.change);
    if (pair.curvature > 0) pairs.push_back(std::move(pair));
    if (pairs.size() > remembered) pairs.pop_front();
    mode.position = std::move(next);
    mode.log_density = value;
    gradient = next_gradient;
  }
  mode.slope = std::sqrt(product(gradient, gradient));
  return mode;
}

}  // namespace superstep::sampling
