// Densities whose moments are known, and chains on them.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "superstep/sampling/chain.h"
#include "superstep/sampling/diagnostics/convergence.h"

namespace superstep::sampling {

// exp(-x^T P x / 2) with a precision P of rows.
class Gaussian : public LogDensity {
 public:
  explicit Gaussian(std::vector<std::vector<double>> precision) : precision_(std::move(precision)) {}
  std::size_t size() const override { return precision_.size(); }
  double evaluate(std::span<const double> x, std::span<double> gradient) override {
    ++asked;
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      double row = 0;
      for (std::size_t k = 0; k < x.size(); ++k) row += precision_[i][k] * x[k];
      gradient[i] = -row;
      sum += x[i] * row;
    }
    return -sum / 2;
  }
  double value(std::span<const double> x) override {
    std::vector<double> gradient(x.size());
    return evaluate(x, gradient);
  }

  std::int64_t asked = 0;

 private:
  std::vector<std::vector<double>> precision_;
};

inline Gaussian standard_normal(std::size_t size) {
  std::vector<std::vector<double>> one(size, std::vector<double>(size));
  for (std::size_t i = 0; i < size; ++i) one[i][i] = 1;
  return Gaussian(one);
}

// cos(x) - x^4 / 10 summed: not quadratic, so that a leapfrog step has an error.
class Wavy : public LogDensity {
 public:
  std::size_t size() const override { return 3; }
  double evaluate(std::span<const double> x, std::span<double> gradient) override {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += std::cos(x[i]) - std::pow(x[i], 4) / 10;
      gradient[i] = -std::sin(x[i]) - 0.4 * std::pow(x[i], 3);
    }
    return sum;
  }
  double value(std::span<const double> x) override {
    std::vector<double> gradient(x.size());
    return evaluate(x, gradient);
  }
};

// The draws of each number behind the warm-up, by number, then by chain.
inline std::vector<Chains> draw(auto&& make_density, const ChainSettings& settings, int chains, int draws,
                                double start = 0) {
  std::vector<Chains> found;
  for (int c = 0; c < chains; ++c) {
    auto density = make_density();
    found.resize(density.size(), Chains(static_cast<std::size_t>(chains)));
    Chain chain(density, settings, c, std::vector<double>(density.size(), start + 0.1 * c));
    while (chain.warms_up()) chain.next();
    for (int i = 0; i < draws; ++i) {
      chain.next();
      for (std::size_t k = 0; k < density.size(); ++k)
        found[k][static_cast<std::size_t>(c)].push_back(chain.position()[k]);
    }
  }
  return found;
}

struct Moments {
  double mean = 0, variance = 0;
};
inline Moments moments(const Chains& chains) {
  double sum = 0, squares = 0, count = 0;
  for (const auto& chain : chains)
    for (const double value : chain) sum += value, squares += value * value, ++count;
  return {sum / count, squares / count - sum / count * sum / count};
}

}  // namespace superstep::sampling
