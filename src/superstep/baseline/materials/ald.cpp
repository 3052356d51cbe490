#include "superstep/baseline/materials/ald.h"

#include <ceres/tiny_solver.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/random.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/file/check.h"
#include "superstep/file/csv.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/stream_blocks.h"

namespace superstep::baseline {
namespace {

constexpr double low[] = {0.02, 0.02, 0, 0}, high[] = {1, 1, 2, 2};

// The simulator as a function of the four unknowns.
struct Simulator {
  data::AldProcess process;
  AldTarget kind;
  std::span<const double> target;
  int cycles;
  double step;

  std::vector<double> curve(const double* unknown) const {
    data::AldProcess trial = process;
    trial.first.purge_s = unknown[0], trial.second.purge_s = unknown[1];
    trial.mass_a = unknown[2], trial.mass_b = unknown[3];
    std::vector<double> trace;
    if (kind == AldTarget::growth)
      return data::growth_per_cycle(trial, static_cast<int>(target.size()), step);
    data::growth_per_cycle(trial, cycles, step, &trace);
    std::vector<double> points;
    for (std::size_t k = 1; k <= target.size(); ++k)
      points.push_back(trace[k * trace.size() / target.size() - 1]);
    return points;
  }
  double deviation(const double* unknown) const {
    const std::vector<double> now = curve(unknown);
    double worst = 0, largest = 0;
    for (double value : target) largest = std::max(largest, std::abs(value));
    for (std::size_t k = 0; k < target.size(); ++k) {
      const double scale = kind == AldTarget::growth ? std::abs(target[k]) : largest;
      worst = std::max(worst, std::abs(now[k] - target[k]) / std::max(scale, 1e-12));
    }
    return worst;
  }
};

using Unknowns = Eigen::Vector4d;

// The unknowns as logistic functions of free numbers, so that they stay within their bounds.
Unknowns bounded(const double* free) {
  Unknowns unknowns;
  for (int k = 0; k < 4; ++k) unknowns[k] = low[k] + (high[k] - low[k]) / (1 + std::exp(-free[k]));
  return unknowns;
}

// What the solver asks for: residuals, and their Jacobian by central differences.
struct CurveResiduals {
  using Scalar = double;
  enum { NUM_RESIDUALS = Eigen::Dynamic, NUM_PARAMETERS = 4 };
  const Simulator& simulator;
  int& simulations;

  int NumResiduals() const { return static_cast<int>(simulator.target.size()); }
  bool operator()(const double* free, double* residuals, double* jacobian) const {
    const std::size_t points = simulator.target.size();
    const std::vector<double> now = evaluate(free);
    for (std::size_t i = 0; i < points; ++i) residuals[i] = now[i] - simulator.target[i];
    if (!jacobian) return true;
    constexpr double step = 1e-5;
    for (std::size_t k = 0; k < 4; ++k) {
      double up[] = {free[0], free[1], free[2], free[3]}, down[] = {free[0], free[1], free[2], free[3]};
      up[k] += step, down[k] -= step;
      const std::vector<double> above = evaluate(up), below = evaluate(down);
      for (std::size_t i = 0; i < points; ++i) jacobian[k * points + i] = (above[i] - below[i]) / (2 * step);
    }
    return true;
  }

 private:
  std::vector<double> evaluate(const double* free) const {
    ++simulations;
    return simulator.curve(bounded(free).data());
  }
};

// Fits from one start, given as free numbers; returns half the sum of squares and counts the simulations.
double run_once(const Simulator& simulator, Eigen::Vector4d& free, int& simulations) {
  const CurveResiduals function{simulator, simulations};
  ceres::TinySolver<CurveResiduals> solver;
  solver.options.max_num_iterations = 100;
  solver.options.function_tolerance = 1e-12;
  return solver.Solve(function, &free).final_cost;
}

struct Targets {
  Tensor curves;    // [samples, points]
  Tensor settings;  // [samples, 4] where known, else empty
};

Targets read_targets(const std::filesystem::path& path, AldTarget kind) {
  const data::ArrayFile file(path);
  const std::int64_t any[] = {-1, -1}, four[] = {-1, 4};
  Targets targets{file.read(kind == AldTarget::growth ? "gpc" : "trace", ElementType::f64, any), {}};
  if (targets.curves.element_count() == 0) throw Error(ErrorCode::bad_file, "has no curves", path.string());
  data::require_finite(targets.curves, path.string());
  if (file.contains("settings")) targets.settings = file.read("settings", ElementType::f64, four);
  if (targets.settings.element_count() && targets.settings.shape()[0] != targets.curves.shape()[0])
    throw Error(ErrorCode::bad_file, "has another number of settings than of curves", path.string());
  return targets;
}

void write_table(const std::filesystem::path& path, const std::vector<AldFit>& fits) {
  data::CsvWriter table(path,
                        {"sample", "purge_a", "purge_b", "mass_a", "mass_b", "deviation", "simulations"});
  for (std::size_t k = 0; k < fits.size(); ++k) {
    const AldFit& fit = fits[k];
    table.cell(static_cast<std::int64_t>(k)).cell(fit.purge_a_s).cell(fit.purge_b_s).cell(fit.mass_a);
    table.cell(fit.mass_b).cell(fit.deviation).cell(fit.simulations).end_row();
  }
  table.close();
}

// The largest relative error of the four unknowns.
double settings_error(const AldFit& fit, std::span<const double> truth) {
  const double found[] = {fit.purge_a_s, fit.purge_b_s, fit.mass_a, fit.mass_b};
  double worst = 0;
  for (std::size_t k = 0; k < 4; ++k) worst = std::max(worst, std::abs(found[k] - truth[k]) / truth[k]);
  return worst;
}

Report summarize(const std::vector<AldFit>& fits, const Targets& targets, double seconds) {
  std::vector<double> deviations, simulations, errors;
  for (std::size_t k = 0; k < fits.size(); ++k) {
    deviations.push_back(fits[k].deviation);
    simulations.push_back(fits[k].simulations);
    if (targets.settings.element_count())
      errors.push_back(settings_error(fits[k], targets.settings.as<double>().subspan(4 * k, 4)));
  }
  const double within = static_cast<double>(std::count_if(deviations.begin(), deviations.end(),
                                                          [](double d) { return d <= 0.1; })) /
                        static_cast<double>(fits.size());
  Report report;
  report.metrics = {{"median_error", median(deviations), ""},
                    {"worst_error", *std::max_element(deviations.begin(), deviations.end()), ""},
                    {"within_tolerance", within, ""},
                    {"simulations", median(simulations), ""},
                    {"throughput", static_cast<double>(fits.size()) / seconds, "samples/s"}};
  if (!errors.empty()) report.metrics.push_back({"settings_error", median(errors), ""});
  TextTable table(
      {"curves", "median deviation", "worst", "within 10 %", "simulations", "settings off by", "curves/s"});
  table.add_row({format_count(static_cast<double>(fits.size())), fmt::format("{:.2e}", median(deviations)),
                 fmt::format("{:.2e}", report.metrics[1].value), fmt::format("{:.1f} %", 100 * within),
                 fmt::format("{:.0f}", median(simulations)),
                 errors.empty() ? "-" : fmt::format("{:.2e}", median(errors)),
                 fmt::format("{:.1f}", report.metrics[4].value)});
  report.text = table.to_string();
  return report;
}

Report run(const Request& request, const Options& options) {
  static const std::string kinds[] = {"gpc", "trace"};
  const auto kind = static_cast<AldTarget>(options.choice("target", kinds));
  const data::AldProcess& process = data::find_ald_chemistry(options.text("chemistry"));
  const int cycles = static_cast<int>(options.integer("cycles", 1, 100000));
  const int starts = static_cast<int>(options.integer("starts", 1, 1000));
  const double step = data::default_time_step(process);
  const Targets targets = read_targets(request.input, kind);
  const auto points = static_cast<std::size_t>(targets.curves.shape()[1]);
  std::vector<AldFit> fits(static_cast<std::size_t>(targets.curves.shape()[0]));
  Progress progress("fitting", static_cast<double>(fits.size()), "curves");
  const Stopwatch watch;
  request.pool->parallel_for(static_cast<std::int64_t>(fits.size()), [&](std::int64_t k, int worker) {
    data::throw_if_interrupted();
    const auto at = static_cast<std::size_t>(k);
    fits[at] = fit_ald(process, kind, targets.curves.as<double>().subspan(at * points, points), cycles, step,
                       starts);
    if (worker == 0) progress.update(static_cast<double>(k + 1));
  });
  const double seconds = watch.seconds();
  if (!request.output.empty()) write_table(request.output, fits);
  return summarize(fits, targets, seconds);
}

}  // namespace

AldFit fit_ald(const data::AldProcess& process, AldTarget kind, std::span<const double> target, int cycles,
               double step_s, int starts) {
  const Simulator simulator{process, kind, target, cycles, step_s};
  AldFit best;
  double lowest = std::numeric_limits<double>::infinity();
  RandomStream random(0);
  for (int start = 0; start < starts; ++start) {
    Eigen::Vector4d free;
    for (double& number : free) number = random.uniform(-2.5, 2.5);  // a share of 0.08 to 0.92 of the range
    const double cost = run_once(simulator, free, best.simulations);
    if (!(cost < lowest)) continue;
    lowest = cost;
    const Unknowns unknown = bounded(free.data());
    best = {unknown[0],      unknown[1], unknown[2], unknown[3], simulator.deviation(unknown.data()),
            best.simulations};
  }
  return best;
}

Entry ald_optimizer() {
  return {"tad-ald",
          "direct optimization on the simulator: Levenberg-Marquardt from several starts",
          {{"target", "gpc",
            "what is fitted: gpc, the growth of every cycle, or trace, the mass within the last"},
           {"chemistry", "reference", "reference, Al2O3-200C, Al2O3-100C, TiO2-200C or W-200C"},
           {"cycles", "50", "cycles before the end of a trace"},
           {"starts", "8", "starting points"}},
          run};
}

}  // namespace superstep::baseline
