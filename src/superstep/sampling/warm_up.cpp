#include "superstep/sampling/warm_up.h"

#include <algorithm>
#include <cmath>

namespace superstep::sampling {
namespace {

// Hoffman and Gelman (2014), section 3.2.1: how strongly the step follows, how late it settles, how soon what
// was early is forgotten.
constexpr double gamma = 0.05, settling = 10, forgetting = 0.75;
// Iterations of the first window, of the last, and of the first that gives variances: Stan's.
constexpr std::int64_t usual_first = 75, usual_last = 50, usual_window = 25;
constexpr std::int64_t least_with_windows = 20;

}  // namespace

void DualAveraging::restart(double step) {
  state_ = {.centre = std::log(10 * step), .log_step = std::log(step), .log_mean_step = 0};
}

void DualAveraging::learn(double acceptance) {
  const double t = ++state_.count;
  const double weight = 1 / (t + settling);
  state_.mean_error = (1 - weight) * state_.mean_error + weight * (target_ - acceptance);
  state_.log_step = state_.centre - std::sqrt(t) / gamma * state_.mean_error;
  const double taken = std::pow(t, -forgetting);
  state_.log_mean_step = taken * state_.log_step + (1 - taken) * state_.log_mean_step;
}

double DualAveraging::step() const { return std::exp(state_.log_step); }
double DualAveraging::final_step() const {
  return std::exp(state_.count > 0 ? state_.log_mean_step : state_.log_step);
}

void RunningVariance::add(std::span<const double> values) {
  ++count_;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double off = values[i] - mean_[i];
    mean_[i] += off / static_cast<double>(count_);
    squares_[i] += off * (values[i] - mean_[i]);
  }
}

void RunningVariance::clear() {
  count_ = 0;
  std::ranges::fill(mean_, 0);
  std::ranges::fill(squares_, 0);
}

std::vector<double> RunningVariance::regularised() const {
  constexpr double others = 5, their_variance = 1e-3;
  const auto n = static_cast<double>(count_);
  std::vector<double> variances;
  for (const double squares : squares_)
    variances.push_back(n / (n + others) * squares / std::max(1.0, n - 1) +
                        others / (n + others) * their_variance);
  return variances;
}

void RunningVariance::restore(std::int64_t count, std::span<const double> mean,
                              std::span<const double> squares) {
  count_ = count;
  mean_.assign(mean.begin(), mean.end());
  squares_.assign(squares.begin(), squares.end());
}

bool WarmUpPlan::takes_over(std::int64_t iteration) const {
  return std::ranges::find(ends, iteration + 1) != ends.end();
}

WarmUpPlan plan_warm_up(std::int64_t iterations) {
  WarmUpPlan plan{.iterations = iterations, .first = iterations, .last = 0, .ends = {}};
  if (iterations < least_with_windows) return plan;
  plan.first = usual_first, plan.last = usual_last;
  std::int64_t window = usual_window;
  if (iterations < usual_first + usual_last + usual_window) {  // the same shares of what there is
    plan.first = iterations * 15 / 100, plan.last = iterations / 10;
    window = iterations - plan.first - plan.last;
  }
  const std::int64_t end = iterations - plan.last;
  for (std::int64_t at = plan.first; at < end; window *= 2) {
    // A window that would leave less than twice its length behind it takes all that is left.
    at = at + 3 * window > end ? end : at + window;
    plan.ends.push_back(at);
  }
  return plan;
}

}  // namespace superstep::sampling
