// A Markov chain: transitions one after another, learning in the warm-up and drawing behind it.
//
// Iteration i of chain c draws RandomStream(seed, i, c) and nothing else: a chain that is restored where it
// was goes on with the same bits, on whichever thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/sampling/transition.h"
#include "superstep/sampling/warm_up.h"

namespace superstep::sampling {

enum class Method : std::uint8_t { nuts, hmc, metropolis };

const char* name_of(Method method);
Method method_from_name(std::string_view name);  // throws Error (invalid_argument), nearest name

struct ChainSettings {
  Method method = Method::nuts;
  std::int64_t warm_up = 1000;
  double target_acceptance = 0.8;  // of the learnt step; metropolis: see usual_acceptance()
  int most_doublings = 10;         // nuts
  int leapfrog_steps = 1000;       // hmc
  double jitter = 0;               // hmc: the step is multiplied by a number from [1 - jitter, 1 + jitter]
  bool learn_variances = true;     // else the mass matrix stays what it was at the start
  std::uint64_t seed = 1;
};
// Where a method moves fastest: 0.8 (Stan's), of hmc 0.65 (A. Beskos et al., Bernoulli 19, 2013), of
// metropolis 0.234 (G. Roberts et al., Ann. Appl. Probab. 7, 1997).
double usual_acceptance(Method method);

// What is told of an iteration.
struct Iteration {
  double log_density = 0, energy = 0, acceptance = 0, step = 0;
  int evaluations = 0, depth = 0;
  bool divergent = false, warm_up = false;
};

// All that a chain is between two iterations.
struct ChainState {
  std::int64_t iteration = 0;
  std::vector<double> position = {};
  double step = 0;                        // 0: to be found from nothing
  bool step_is_open = true;               // to be found anew before the next iteration
  std::vector<double> inverse_mass = {};  // empty: ones
  DualAveraging::State averaging = {};
  std::int64_t gathered = 0;  // vectors of the running variance
  std::vector<double> gathered_mean = {}, gathered_squares = {};
};

class Chain {
 public:
  // Throws Error (diverged) where the start has no density. The density outlives the chain.
  Chain(LogDensity& density, const ChainSettings& settings, int number, std::span<const double> start);
  // Goes on where `state` was; `start` of a state at iteration 0 may come with a step and variances of its
  // own, from another density.
  Chain(LogDensity& density, const ChainSettings& settings, int number, const ChainState& state);

  Iteration next();  // what it throws leaves the chain as it was
  std::span<const double> position() const { return point_.position; }
  std::int64_t iteration() const { return iteration_; }
  bool warms_up() const { return iteration_ < settings_.warm_up; }
  double step() const { return step_; }
  std::span<const double> inverse_mass() const { return inverse_mass_; }
  ChainState state() const;

 private:
  void find_density();
  Transition move(RandomStream& random, double step);
  void learn(const Transition& transition);
  void find_step();

  LogDensity& density_;
  ChainSettings settings_;
  int number_;
  WarmUpPlan plan_;
  PhasePoint point_;
  std::int64_t iteration_ = 0;
  double step_ = 0;
  bool step_is_open_ = true;
  std::vector<double> inverse_mass_;
  DualAveraging averaging_;
  RunningVariance gathered_;
  std::optional<NoUTurn> no_u_turn_;
};

}  // namespace superstep::sampling
