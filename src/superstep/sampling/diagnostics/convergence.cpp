#include "superstep/sampling/diagnostics/convergence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "superstep/base/statistics.h"

namespace superstep::sampling {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t least_draws = 4;

std::vector<double> all_of(const Chains& chains) {
  std::vector<double> all;
  for (const auto& chain : chains) all.insert(all.end(), chain.begin(), chain.end());
  return all;
}

bool says_something(const Chains& chains) {
  if (chains.empty()) return false;
  for (const auto& chain : chains) {
    if (chain.size() < least_draws || chain.size() != chains[0].size()) return false;
    if (!std::ranges::all_of(chain, [](double value) { return std::isfinite(value); })) return false;
  }
  const double first = chains[0][0];
  return std::ranges::any_of(chains, [&](const auto& chain) {
    return std::ranges::any_of(chain, [&](double v) { return v != first; });
  });
}

double squares_about(std::span<const double> values, double centre) {
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return sum;
}

Chains each(const Chains& chains, auto&& change) {
  Chains changed = chains;
  for (auto& chain : changed)
    for (double& value : chain) value = change(value);
  return changed;
}

// Mean variance within the chains, and the variance of the density that all of them together say.
struct Variances {
  double within, all;
};
Variances variances_of(const Chains& chains) {
  const auto n = static_cast<double>(chains[0].size());
  std::vector<double> means;
  double within = 0;
  for (const auto& chain : chains) {
    means.push_back(mean(chain));
    within += squares_about(chain, means.back()) / (n - 1);
  }
  within /= static_cast<double>(chains.size());
  double all = within * (n - 1) / n;
  if (chains.size() > 1) all += squares_about(means, mean(means)) / (static_cast<double>(chains.size()) - 1);
  return {within, all};
}

// Autocorrelations of all chains together: what is not correlated within them, nor between.
class Autocorrelation {
 public:
  explicit Autocorrelation(const Chains& chains) : variances_(variances_of(chains)) {
    for (const auto& chain : chains) {
      const double centre = mean(chain);
      centred_.push_back(chain);
      for (double& value : centred_.back()) value -= centre;
    }
  }
  double at(std::size_t lag) const {
    double covariance = 0;
    for (const auto& chain : centred_) {
      double sum = 0;
      for (std::size_t i = lag; i < chain.size(); ++i) sum += chain[i] * chain[i - lag];
      covariance += sum / static_cast<double>(chain.size());
    }
    covariance /= static_cast<double>(centred_.size());
    return 1 - (variances_.within - covariance) / variances_.all;
  }

 private:
  Chains centred_;
  Variances variances_;
};

double tail_effective(const Chains& halves) {
  const std::vector<double> all = all_of(halves);
  double least = std::numeric_limits<double>::infinity();
  for (const double share : {0.05, 0.95}) {
    const double limit = quantile(all, share);
    const Chains below = each(halves, [&](double value) { return value <= limit ? 1.0 : 0.0; });
    if (!says_something(below)) return nothing;
    least = std::min(least, effective_draws(below));
  }
  return least;
}

}  // namespace

Chains split_in_halves(const Chains& chains) {
  Chains halves;
  for (const auto& chain : chains) {
    const auto half = static_cast<std::ptrdiff_t>(chain.size() / 2);
    halves.emplace_back(chain.begin(), chain.begin() + half);
    halves.emplace_back(chain.end() - half, chain.end());
  }
  return halves;
}

Chains normal_scores(const Chains& chains) {
  const std::vector<double> all = all_of(chains);
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return all[i]; });
  std::vector<double> scores(all.size());
  const auto count = static_cast<double>(all.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && all[order[end]] == all[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;  // the mean of begin + 1 ... end
    // Blom's fractional offset, as in the paper's equation 14.
    const double score = normal_quantile((rank - 0.375) / (count + 0.25));
    for (std::size_t i = begin; i < end; ++i) scores[order[i]] = score;
  }
  Chains made = chains;
  auto next = scores.begin();
  for (auto& chain : made)
    for (double& value : chain) value = *next++;
  return made;
}

double potential_scale_reduction(const Chains& chains) {
  const Variances variances = variances_of(chains);
  return std::sqrt(variances.all / variances.within);
}

double effective_draws(const Chains& chains) {
  const Autocorrelation correlation(chains);
  const std::size_t n = chains[0].size();
  const double all = static_cast<double>(n * chains.size());
  // Sums of lags 2k and 2k + 1: positive and falling for a reversible chain; noise is what is not.
  double sum = 0, before = std::numeric_limits<double>::infinity();
  std::size_t lag = 0;
  for (; lag + 1 < n; lag += 2) {
    const double even = lag == 0 ? 1 : correlation.at(lag), pair = even + correlation.at(lag + 1);
    if (!(pair > 0)) {
      sum += std::max(0.0, even) / 2;  // the first lag that is left out counts once where it is positive
      break;
    }
    before = std::min(before, pair);
    sum += before;
  }
  // Antithetic chains may say more than as many independent draws, up to a limit of the paper.
  const double time = std::max(2 * sum - 1, 1 / std::log10(all));
  return all / time;
}

double normal_quantile(double p) {
  // M. Abramowitz, I. Stegun (1964), 26.2.23, to 4.5e-4; then Newton's method with Halley's correction.
  const double t = std::sqrt(-2 * std::log(std::min(p, 1 - p)));
  double x =
      t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  if (p < 0.5) x = -x;
  for (int i = 0; i < 3; ++i) {
    const double off = 0.5 * std::erfc(-x / std::numbers::sqrt2) - p;
    const double slope = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double newton = off / slope;
    x -= newton / (1 + x * newton / 2);
  }
  return x;
}

double energy_information(std::span<const double> energies) {
  if (energies.size() < 2) return nothing;
  double jumps = 0;
  for (std::size_t i = 1; i < energies.size(); ++i)
    jumps += (energies[i] - energies[i - 1]) * (energies[i] - energies[i - 1]);
  return jumps / squares_about(energies, mean(energies));
}

Convergence convergence(const Chains& chains) {
  const Chains halves = split_in_halves(chains);
  if (!says_something(chains) || !says_something(halves))
    return {nothing, nothing, nothing, nothing, nothing};
  const Chains scores = normal_scores(halves);
  const double middle = median(all_of(halves));
  const Chains folded = each(halves, [&](double value) { return std::abs(value - middle); });
  Convergence found;
  found.r_hat = potential_scale_reduction(scores);
  if (says_something(folded))
    found.r_hat = std::max(found.r_hat, potential_scale_reduction(normal_scores(folded)));
  found.effective = effective_draws(halves);
  found.bulk = effective_draws(scores);
  found.tail = tail_effective(halves);
  const std::vector<double> all = all_of(chains);
  const double variance = squares_about(all, mean(all)) / (static_cast<double>(all.size()) - 1);
  found.error_of_mean = std::sqrt(variance / found.effective);
  return found;
}

}  // namespace superstep::sampling
