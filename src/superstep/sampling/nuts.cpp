// The no-U-turn sampler.
//
// The path is doubled, forwards or backwards in time by a fair coin, until it turns back on itself. Within a
// new half each point is chosen by its weight exp(-energy); between the path so far and the new half the
// choice leans towards the new one (Betancourt 2017, A.3.2: biased progressive sampling).
#include <algorithm>
#include <cmath>

#include "superstep/sampling/transition.h"

namespace superstep::sampling {
namespace {

double log_of_sum(double a, double b) {
  const double high = std::max(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

// Does motion with this momentum still lead along `sum`, that of all momenta between?
bool goes_along(std::span<const double> momentum, std::span<const double> inverse_mass,
                std::span<const double> sum) {
  double product = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) product += momentum[i] * inverse_mass[i] * sum[i];
  return product > 0;
}

}  // namespace

struct NoUTurn::Path {
  const Motion& motion;
  RandomStream& random;
  double first_energy;
  double acceptances = 0;
  Transition& told;
};

NoUTurn::Tree::Tree(std::size_t size)
    : momentum_sum(size), first_momentum(size), last_momentum(size), chosen(size) {}

NoUTurn::NoUTurn(std::size_t size, int most_doublings)
    : most_doublings_(most_doublings),
      forward_(size),
      backward_(size),
      start_(size),
      whole_(size),
      side_(size),
      sum_(size) {
  for (int depth = 0; depth + 1 < most_doublings; ++depth) second_halves_.emplace_back(size);
}

bool NoUTurn::grow_leaf(Path& path, PhasePoint& end, double direction, Tree& tree) {
  leapfrog(path.motion.density, path.motion.inverse_mass, direction * path.motion.step, end);
  ++path.told.evaluations;
  double above = energy(end, path.motion.inverse_mass) - path.first_energy;
  if (std::isnan(above)) above = std::numeric_limits<double>::infinity();
  path.acceptances += std::min(1.0, std::exp(-above));
  tree.log_weight = -above;
  tree.momentum_sum = tree.first_momentum = tree.last_momentum = end.momentum;
  tree.chosen = end;
  if (above > divergence) path.told.divergent = true;
  return above <= divergence;
}

// Puts `second`, which was made right after `first`, behind it. Does the whole still not turn? Asked over all
// of it, and over each half with the point of the other that is next to it.
bool NoUTurn::join(Path& path, Tree& first, Tree& second, double log_accept) {
  const auto mass = path.motion.inverse_mass;
  const auto plus = [&](const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] = a[i] + b[i];
    return std::span<const double>(sum_);
  };
  const auto straight = [&](const std::vector<double>& a, const std::vector<double>& b,
                            std::span<const double> sum) {
    return goes_along(a, mass, sum) && goes_along(b, mass, sum);
  };
  const bool goes_on =
      straight(first.first_momentum, second.first_momentum,
               plus(first.momentum_sum, second.first_momentum)) &&
      straight(first.last_momentum, second.last_momentum, plus(first.last_momentum, second.momentum_sum)) &&
      straight(first.first_momentum, second.last_momentum, plus(first.momentum_sum, second.momentum_sum));
  if (std::log(path.random.uniform()) < log_accept) std::swap(first.chosen, second.chosen);
  first.log_weight = log_of_sum(first.log_weight, second.log_weight);
  for (std::size_t i = 0; i < sum_.size(); ++i) first.momentum_sum[i] += second.momentum_sum[i];
  std::swap(first.last_momentum, second.last_momentum);
  return goes_on;
}

bool NoUTurn::grow(Path& path, int depth, PhasePoint& end, double direction, Tree& tree) {
  if (depth == 0) return grow_leaf(path, end, direction, tree);
  Tree& second = second_halves_[static_cast<std::size_t>(depth - 1)];
  if (!grow(path, depth - 1, end, direction, tree) || !grow(path, depth - 1, end, direction, second))
    return false;
  const double both = log_of_sum(tree.log_weight, second.log_weight);
  return join(path, tree, second, second.log_weight - both);
}

Transition NoUTurn::move(const Motion& motion, RandomStream& random, PhasePoint& point) {
  Transition told;
  draw_momentum(random, motion.inverse_mass, point.momentum);
  start_ = point;
  forward_ = backward_ = start_;
  whole_.momentum_sum = whole_.first_momentum = whole_.last_momentum = start_.momentum;
  whole_.log_weight = 0;
  whole_.chosen = start_;
  Path path{motion, random, energy(start_, motion.inverse_mass), 0, told};
  for (bool goes_on = true; goes_on && told.depth < most_doublings_; ++told.depth) {
    const bool ahead = random.uniform() < 0.5;
    if (!grow(path, told.depth, ahead ? forward_ : backward_, ahead ? 1 : -1, side_)) break;
    // Backwards, the ends of the path so far change their places: what is next to the new half is last.
    if (!ahead) std::swap(whole_.first_momentum, whole_.last_momentum);
    goes_on = join(path, whole_, side_, side_.log_weight - whole_.log_weight);
    if (!ahead) std::swap(whole_.first_momentum, whole_.last_momentum);
  }
  told.acceptance = told.evaluations > 0 ? path.acceptances / told.evaluations : 0;
  told.energy = energy(whole_.chosen, motion.inverse_mass);
  told.moved = whole_.chosen.position != start_.position;
  std::swap(point, whole_.chosen);
  return told;
}

}  // namespace superstep::sampling
