#include "superstep/sampling/chain.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::sampling {
namespace {

const std::vector<std::string> method_names = {"nuts", "hmc", "metropolis"};

// Streams of a chain beside those of its iterations, which are numbered from 0: the search for a first step
// before iteration i.
constexpr std::uint64_t step_search = std::uint64_t{1} << 40;

}  // namespace

const char* name_of(Method method) { return method_names[static_cast<std::size_t>(method)].c_str(); }

Method method_from_name(std::string_view name) {
  for (std::size_t i = 0; i < method_names.size(); ++i)
    if (method_names[i] == name) return static_cast<Method>(i);
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no method '{}'", name), "--method",
              unknown_name_hint(name, method_names));
}

double usual_acceptance(Method method) {
  return method == Method::nuts ? 0.8 : method == Method::hmc ? 0.65 : 0.234;
}

Chain::Chain(LogDensity& density, const ChainSettings& settings, int number, std::span<const double> start)
    : Chain(density, settings, number, ChainState{.position = {start.begin(), start.end()}}) {}

Chain::Chain(LogDensity& density, const ChainSettings& settings, int number, const ChainState& state)
    : density_(density),
      settings_(settings),
      number_(number),
      plan_(plan_warm_up(settings.warm_up)),
      point_(density.size()),
      iteration_(state.iteration),
      step_(state.step),
      step_is_open_(state.step_is_open),
      inverse_mass_(state.inverse_mass),
      averaging_(settings.target_acceptance),
      gathered_(density.size()) {
  if (inverse_mass_.empty()) inverse_mass_.assign(density.size(), 1);
  point_.position = state.position;
  if (state.iteration > 0) {
    averaging_.restore(state.averaging);
    gathered_.restore(state.gathered, state.gathered_mean, state.gathered_squares);
  }
  if (settings.method == Method::nuts) no_u_turn_.emplace(density.size(), settings.most_doublings);
  find_density();
}

void Chain::find_density() {
  if (settings_.method == Method::metropolis)
    point_.log_density = density_.value(point_.position);
  else
    evaluate(density_, point_);
  if (!std::isfinite(point_.log_density))
    throw Error(ErrorCode::diverged, fmt::format("the log density at the start is {}", point_.log_density),
                fmt::format("chain {}", number_ + 1),
                "data or first weights are too large: look at the data's units, or choose another --seed");
}

ChainState Chain::state() const {
  return {.iteration = iteration_,
          .position = point_.position,
          .step = step_,
          .step_is_open = step_is_open_,
          .inverse_mass = inverse_mass_,
          .averaging = averaging_.state(),
          .gathered = gathered_.count(),
          .gathered_mean = {gathered_.mean().begin(), gathered_.mean().end()},
          .gathered_squares = {gathered_.squares().begin(), gathered_.squares().end()}};
}

// At the beginning, and after the variances have changed. Changes nothing where it is left by an exception.
void Chain::find_step() {
  double step = step_;
  if (settings_.method == Method::metropolis) {
    if (step == 0) step = 2.4 / std::sqrt(static_cast<double>(density_.size()));  // Roberts et al. (1997)
  } else {
    RandomStream random(settings_.seed, step_search + static_cast<std::uint64_t>(iteration_),
                        static_cast<std::uint32_t>(number_));
    // From a step of Gaussians of as many dimensions (Neal 2011, section 5.4.2).
    if (step == 0) step = 1 / std::pow(static_cast<double>(density_.size()), 0.25);
    step = reasonable_step(density_, inverse_mass_, step, random, point_);
  }
  step_ = step;
  averaging_.restart(step);
  step_is_open_ = false;
}

Transition Chain::move(RandomStream& random, double step) {
  const Motion motion{density_, inverse_mass_, step};
  switch (settings_.method) {
    case Method::nuts: return no_u_turn_->move(motion, random, point_);
    case Method::hmc: return move_by_hmc(motion, settings_.leapfrog_steps, random, point_);
    case Method::metropolis: break;
  }
  return move_by_metropolis(motion, random, point_);
}

void Chain::learn(const Transition& transition) {
  const std::int64_t iteration = iteration_ - 1;  // the one that is over
  averaging_.learn(transition.acceptance);
  step_ = averaging_.step();
  if (settings_.learn_variances && plan_.gathers(iteration)) gathered_.add(point_.position);
  if (settings_.learn_variances && plan_.takes_over(iteration) && gathered_.count() > 1) {
    inverse_mass_ = gathered_.regularised();
    gathered_.clear();
    step_is_open_ = true;
  }
  if (iteration + 1 == settings_.warm_up) step_ = averaging_.final_step();
}

Iteration Chain::next() {
  if (step_is_open_) find_step();
  RandomStream random(settings_.seed, static_cast<std::uint64_t>(iteration_),
                      static_cast<std::uint32_t>(number_));
  double step = step_;
  if (settings_.method == Method::hmc && settings_.jitter > 0)
    step *= random.uniform(1 - settings_.jitter, 1 + settings_.jitter);
  const bool warm_up = warms_up();
  const Transition made = move(random, step);
  ++iteration_;
  if (warm_up) learn(made);
  return {.log_density = point_.log_density,
          .energy = made.energy,
          .acceptance = made.acceptance,
          .step = step,
          .evaluations = made.evaluations,
          .depth = made.depth,
          .divergent = made.divergent,
          .warm_up = warm_up};
}

}  // namespace superstep::sampling
