// Targeted adaptive design: fit, maximise, check, acquire, until the target is met.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/design/gaussian_process.h"
#include "superstep/design/problem.h"

namespace superstep::design {

// Why a trial was made: before the first iteration, to learn (x2), where the target was expected (x).
enum class Role { initial, learning, target };
std::string_view name_of(Role role);

struct Trial {
  int iteration = 0;  // 0: before the first
  Role role = Role::initial;
  std::vector<double> settings;  // in their units, in the order of the problem's unknowns
  std::vector<double> curve;     // as measured
};

// What one iteration found out and decided.
struct Iteration {
  int number = 1;
  Hyperparameters parameters;
  double log_marginal = 0, acquisition = 0;
  int rank = 0;                               // effective, of the curves so far
  std::vector<double> settings;               // x
  std::vector<std::vector<double>> learning;  // x2
  std::vector<double> predicted, deviation;   // of the curve at x, and its standard deviation
  bool expected_inside = false;               // the prediction with its uncertainty lies in the box
  bool measured_inside = false;               // and the trial at x does; false until there is one
  double seconds = 0;                         // of fit and search; not part of what is resumed
};

// The prediction is taken with so many standard deviations: 95 % of a normal variable.
constexpr double deviations_inside = 1.96;

struct Effort {
  int fit_starts = 6, search_starts = 6;  // of the two searches in an iteration
};

// Fits the trials and says what to try next: `batch` settings to learn from, and the one where the target is
// expected. The same trials, seed and number give the same answer on any number of threads. Throws Error
// (invalid_argument) for fewer than 2 trials, Error (diverged), Error (interrupted).
Iteration decide(const Problem& problem, std::span<const Trial> trials, std::uint64_t seed, int number,
                 ThreadPool& pool, Effort effort = {});

// All that a study has come to. A study goes on from one of these as if it had never stopped.
struct Study {
  std::uint64_t seed = 1;
  std::vector<Trial> trials;
  std::vector<Iteration> iterations;

  bool converged() const { return !iterations.empty() && iterations.back().measured_inside; }
  // The trial at x of an iteration; null where there is none.
  const Trial* target_trial(int iteration) const;
  // The trial that met the target, or else the one whose measured curve lies nearest to it; there must be
  // one.
  const Trial& answer(const Problem& problem) const;
};

// A simulated measurement: the curve with noise, a function of the seed and the number of the trial.
std::vector<double> measure(const Problem& problem, std::span<const double> settings, std::uint64_t seed,
                            std::uint64_t trial);

// Goes on with the study until it converged or has `most_iterations`: initial trials by a Latin hypercube,
// then in each iteration decide(); the trial at x is made, and where it is not inside as expected, those of
// x2. `saved` is called whenever the study has changed as a whole. The problem must be one that is simulated.
void run_study(const Problem& problem, Study& study, int most_iterations, ThreadPool& pool,
               const std::function<void(const Study&)>& saved = {}, Effort effort = {});

// What the study is held against.
struct References {
  double floor = 0;  // largest deviation of the best of as many trials of a Latin hypercube, without noise
  double floor_inside = 0;  // share of those trials inside the tolerance
  double ceiling = 0;       // largest deviation after direct optimisation on the model without noise
  std::vector<double> ceiling_settings;
  int ceiling_simulations = 0;
};
References references(const Problem& problem, std::uint64_t seed, int trials);

}  // namespace superstep::design
