// A floor and a ceiling for a study: as many trials without a model, and the model without noise itself.
#include <algorithm>
#include <limits>

#include "superstep/base/random.h"
#include "superstep/design/latin_hypercube.h"
#include "superstep/design/minimise.h"
#include "superstep/design/study.h"

namespace superstep::design {
namespace {

// Not those of the study: a floor that shared its initial trials would not be another draw.
constexpr std::uint32_t floor_stream = 0x666c, ceiling_stream = 0x6365;
constexpr int ceiling_starts = 8;    // of the direct optimisation: as many as the conventional method has
constexpr double difference = 1e-5;  // of a setting in shares of its range, for central differences

std::vector<double> in_units(const Problem& problem, std::span<const double> shares) {
  std::vector<double> settings;
  for (std::size_t d = 0; d < shares.size(); ++d) {
    const Unknown& unknown = problem.unknowns[d];
    settings.push_back(
        std::clamp(unknown.low + shares[d] * (unknown.high - unknown.low), unknown.low, unknown.high));
  }
  return settings;
}

// Sum of squared distances from the target, in units of the box, and its slope by central differences of the
// curve.
struct SquaredDistance {
  const Problem& problem;
  int simulations = 0;

  std::vector<double> residuals(std::span<const double> shares) {
    ++simulations;
    std::vector<double> curve = problem.simulate(in_units(problem, shares));
    for (std::size_t k = 0; k < curve.size(); ++k)
      curve[k] = (curve[k] - problem.target[k]) / problem.half_width[k];
    return curve;
  }
  double operator()(std::span<const double> at, std::span<double> slope) {
    const std::vector<double> here = residuals(at);
    double squares = 0;
    for (double residual : here) squares += residual * residual;
    std::vector<double> moved(at.begin(), at.end());
    for (std::size_t d = 0; d < at.size(); ++d) {
      const double up = std::min(at[d] + difference, 1.0), down = std::max(at[d] - difference, 0.0);
      moved[d] = up;
      const std::vector<double> above = residuals(moved);
      moved[d] = down;
      const std::vector<double> below = residuals(moved);
      moved[d] = at[d], slope[d] = 0;
      for (std::size_t k = 0; k < here.size(); ++k)
        slope[d] += 2 * here[k] * (above[k] - below[k]) / (up - down);
    }
    return squares;
  }
};

void find_floor(const Problem& problem, std::uint64_t seed, int trials, References& references) {
  const auto points =
      latin_hypercube(trials, static_cast<Eigen::Index>(problem.unknowns.size()), seed, floor_stream);
  double nearest = std::numeric_limits<double>::infinity();
  int inside = 0;
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    const Eigen::VectorXd shares = points.row(i);
    const double distance = problem.distance(
        problem.simulate(in_units(problem, {shares.data(), static_cast<std::size_t>(shares.size())})));
    nearest = std::min(nearest, distance);
    inside += distance <= 1;
  }
  references.floor = problem.tolerance * nearest;
  references.floor_inside = static_cast<double>(inside) / trials;
}

}  // namespace

References references(const Problem& problem, std::uint64_t seed, int trials) {
  References references;
  find_floor(problem, seed, trials, references);
  SquaredDistance function{problem};
  const std::size_t count = problem.unknowns.size();
  const std::vector<Bounds> bounds(count, Bounds{0, 1});
  double least = std::numeric_limits<double>::infinity();
  for (int start = 0; start < ceiling_starts; ++start) {
    RandomStream random(seed, static_cast<std::uint64_t>(start), ceiling_stream);
    std::vector<double> at;
    for (std::size_t d = 0; d < count; ++d) at.push_back(random.uniform(0.05, 0.95));
    const Minimum minimum = minimise(function, bounds, at);
    if (!(minimum.value < least)) continue;
    least = minimum.value;
    references.ceiling_settings = in_units(problem, minimum.at);
  }
  references.ceiling = problem.deviation(problem.simulate(references.ceiling_settings));
  references.ceiling_simulations = function.simulations;
  return references;
}

}  // namespace superstep::design
