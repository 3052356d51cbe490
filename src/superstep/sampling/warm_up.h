// What a chain learns before its draws count: the length of a step and the variances along the axes.
//
// As Stan does it: a first window for the step alone, windows of 25, 50, 100, ... iterations of which each
// gives the variances for the next, and a last one for the step alone (Hoffman and Gelman 2014; Stan
// Reference Manual, chapter 15).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace superstep::sampling {

// Nesterov's dual averaging of log(step): Hoffman and Gelman (2014), section 3.2, with their gamma, t0 and
// kappa.
class DualAveraging {
 public:
  struct State {
    double centre = 0, count = 0, mean_error = 0, log_step = 0, log_mean_step = 0;
  };

  explicit DualAveraging(double target = 0.8) : target_(target) {}
  void restart(double step);  // leans towards ten times this one
  void learn(double acceptance);
  double step() const;        // for the next iteration
  double final_step() const;  // the mean of all, late ones most

  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  double target_;
  State state_;
};

// Mean and variance of each number of vectors that come one after another (B. Welford, Technometrics 4,
// 1962).
class RunningVariance {
 public:
  explicit RunningVariance(std::size_t size = 0) : mean_(size), squares_(size) {}
  void add(std::span<const double> values);
  void clear();
  std::int64_t count() const { return count_; }
  // Of as many vectors as were added, drawn towards 1e-3 as if five more had had that: Stan's rule.
  std::vector<double> regularised() const;

  std::span<const double> mean() const { return mean_; }
  std::span<const double> squares() const { return squares_; }
  void restore(std::int64_t count, std::span<const double> mean, std::span<const double> squares);

 private:
  std::int64_t count_ = 0;
  std::vector<double> mean_, squares_;
};

// Which iterations of a warm-up teach what.
struct WarmUpPlan {
  std::int64_t iterations = 0;
  std::int64_t first = 0, last = 0;  // without variances, at its beginning and end
  std::vector<std::int64_t> ends;    // iterations behind which the variances are taken over

  bool gathers(std::int64_t iteration) const { return iteration >= first && iteration < iterations - last; }
  bool takes_over(std::int64_t iteration) const;  // after this one
};
// Of 20 iterations and more; shorter ones learn the step alone.
WarmUpPlan plan_warm_up(std::int64_t iterations);

}  // namespace superstep::sampling
