#include "superstep/design/study.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/design/acquisition.h"
#include "superstep/design/latin_hypercube.h"

namespace superstep::design {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Purposes of random numbers; a stream belongs to the seed, the number of a trial or an iteration, and one of
// these.
enum Purpose : std::uint32_t { initial_stream = 1, noise_stream, iteration_stream };

double to_unit(const Unknown& unknown, double value) {
  return (value - unknown.low) / (unknown.high - unknown.low);
}

double from_unit(const Unknown& unknown, double share) {
  return std::clamp(unknown.low + share * (unknown.high - unknown.low), unknown.low, unknown.high);
}

template <class Vector>
std::vector<double> settings_of(const Problem& problem, const Vector& unit) {
  std::vector<double> settings;
  for (std::size_t d = 0; d < problem.unknowns.size(); ++d)
    settings.push_back(from_unit(problem.unknowns[d], unit[static_cast<Index>(d)]));
  return settings;
}

CurveData data_of(const Problem& problem, std::span<const Trial> trials) {
  const auto rows = static_cast<Index>(trials.size());
  MatrixXd settings(rows, static_cast<Index>(problem.unknowns.size()));
  MatrixXd curves(rows, static_cast<Index>(problem.points()));
  for (Index i = 0; i < rows; ++i) {
    const Trial& trial = trials[static_cast<std::size_t>(i)];
    for (Index d = 0; d < settings.cols(); ++d)
      settings(i, d) =
          to_unit(problem.unknowns[static_cast<std::size_t>(d)], trial.settings[static_cast<std::size_t>(d)]);
    for (Index e = 0; e < curves.cols(); ++e) curves(i, e) = trial.curve[static_cast<std::size_t>(e)];
  }
  return standardised(settings, curves);
}

bool is_expected_inside(const Problem& problem, const CurvePosterior::Prediction& prediction) {
  for (std::size_t k = 0; k < problem.points(); ++k) {
    const double off = std::abs(prediction.mean[k] - problem.target[k]);
    if (!(off + deviations_inside * prediction.deviation[k] <= problem.half_width[k])) return false;
  }
  return true;
}

void require_simulator(const Problem& problem) {
  if (!problem.simulate)
    throw Error(ErrorCode::invalid_argument, "has no 'process' to simulate", problem.name,
                "give what was measured so far with --trials, and the next settings are proposed");
}

void add_trial(const Problem& problem, Study& study, int iteration, Role role, std::vector<double> settings) {
  std::vector<double> curve = measure(problem, settings, study.seed, study.trials.size());
  study.trials.push_back({iteration, role, std::move(settings), std::move(curve)});
}

}  // namespace

std::string_view name_of(Role role) {
  constexpr std::string_view names[] = {"initial", "learning", "target"};
  return names[static_cast<int>(role)];
}

Iteration decide(const Problem& problem, std::span<const Trial> trials, std::uint64_t seed, int number,
                 ThreadPool& pool, Effort effort) {
  if (trials.size() < 2)
    throw Error(ErrorCode::invalid_argument, "a curve cannot be learnt from fewer than 2 trials",
                problem.name);
  const Stopwatch watch;
  const std::uint64_t draws =
      RandomStream(seed, static_cast<std::uint64_t>(number), iteration_stream).next_u64();
  CurveData data = data_of(problem, trials);
  Iteration iteration;
  iteration.number = number;
  const Fit fit = fit_parameters(data, draws, effort.fit_starts, pool);
  iteration.parameters = fit.parameters, iteration.log_marginal = fit.log_marginal;
  iteration.rank = effective_rank(data, fit.parameters.noise);
  const CurvePosterior posterior(std::move(data), fit.parameters);
  const VectorXd target =
      Eigen::Map<const VectorXd>(problem.target.data(), static_cast<Index>(problem.points()));
  const Acquisition acquisition(posterior, target);
  const Proposal proposal =
      propose(acquisition, posterior.data().settings, problem.batch, draws, effort.search_starts, pool);
  iteration.acquisition = proposal.value;
  iteration.settings = settings_of(problem, proposal.point);
  for (Index j = 0; j < proposal.batch.rows(); ++j)
    iteration.learning.push_back(settings_of(problem, VectorXd(proposal.batch.row(j))));
  CurvePosterior::Prediction prediction = posterior.predict(proposal.point);
  iteration.expected_inside = is_expected_inside(problem, prediction);
  iteration.predicted = std::move(prediction.mean), iteration.deviation = std::move(prediction.deviation);
  iteration.seconds = watch.seconds();
  return iteration;
}

const Trial* Study::target_trial(int iteration) const {
  const auto found = std::ranges::find_if(
      trials, [&](const Trial& trial) { return trial.iteration == iteration && trial.role == Role::target; });
  return found == trials.end() ? nullptr : &*found;
}

const Trial& Study::answer(const Problem& problem) const {
  if (converged()) return *target_trial(iterations.back().number);
  return *std::ranges::min_element(trials, {},
                                   [&](const Trial& trial) { return problem.distance(trial.curve); });
}

std::vector<double> measure(const Problem& problem, std::span<const double> settings, std::uint64_t seed,
                            std::uint64_t trial) {
  std::vector<double> curve = problem.simulate(settings);
  RandomStream noise(seed, trial, noise_stream);
  for (double& value : curve) value += problem.noise * noise.normal();
  return curve;
}

void run_study(const Problem& problem, Study& study, int most_iterations, ThreadPool& pool,
               const std::function<void(const Study&)>& saved, Effort effort) {
  require_simulator(problem);
  const auto stop_if_asked = [] {
    if (interrupted()) throw Error(ErrorCode::interrupted, "between two iterations");
  };
  if (study.trials.empty()) {
    const auto points = latin_hypercube(problem.initial, static_cast<Index>(problem.unknowns.size()),
                                        study.seed, initial_stream);
    for (Index i = 0; i < points.rows(); ++i)
      add_trial(problem, study, 0, Role::initial, settings_of(problem, VectorXd(points.row(i))));
    if (saved) saved(study);
  }
  while (!study.converged() && static_cast<int>(study.iterations.size()) < most_iterations) {
    stop_if_asked();
    const int number = static_cast<int>(study.iterations.size()) + 1;
    Study next = study;
    Iteration iteration = decide(problem, study.trials, study.seed, number, pool, effort);
    add_trial(problem, next, number, Role::target, iteration.settings);
    iteration.measured_inside = iteration.expected_inside && problem.distance(next.trials.back().curve) <= 1;
    if (!iteration.measured_inside)
      for (const std::vector<double>& settings : iteration.learning)
        add_trial(problem, next, number, Role::learning, settings);
    next.iterations.push_back(std::move(iteration));
    study = std::move(next);
    if (saved) saved(study);
  }
}

}  // namespace superstep::design
