#include "superstep/baseline/xray/cookiebox_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "superstep/baseline/least_squares.h"

namespace superstep::baseline {
namespace {

using data::cookiebox_angles;
using data::cookiebox_bins;

constexpr double pi = std::numbers::pi;
constexpr std::size_t pixels = std::size_t{cookiebox_angles} * cookiebox_bins;
// Wider than what shots are drawn from (physics/xray/cookiebox.h); a pulse that may be wider covers two
// spikes at once.
constexpr Bounds kick_bounds{-0.5, 25}, width_bounds{1.5, 5.5}, polarization_bounds{0, 1};
constexpr double smallest_density = 1e-5;
// A spike that has drifted off all bins may grow without changing the likelihood, up to infinity: 22,000
// times what shots have in the mean is far enough. Chosen.
constexpr double largest_log_amplitude = 10;

double angle_of(int row) { return 2 * pi * row / cookiebox_angles; }

// cos^2(pi x / (2 w)) for |x| < w, and its integral from -w to x.
double pulse(double x, double width) {
  return std::abs(x) < width ? 0.5 * (1 + std::cos(pi * x / width)) : 0;
}
double pulse_integral(double x, double width) {
  const double inside = std::clamp(x, -width, width);
  return (inside + width) / 2 + width / (2 * pi) * std::sin(pi * inside / width);
}
// d/dw of that integral, x fixed.
double pulse_widening(double x, double width) {
  if (x <= -width) return 0;
  if (x >= width) return 1;
  const double turn = pi * x / width;
  return 0.5 + std::sin(turn) / (2 * pi) - x / (2 * width) * std::cos(turn);
}

// Parameters of a fit: kick, width, polarization p cos d and p sin d would not keep p below 1, so p and d;
// log of the background; then centre, phase and log amplitude of each spike. Bounded ones as free values.
enum Shared { kick, width, polarization, direction, background, shared_parameters };
enum Own { centre, phase, amplitude, own_parameters };

// The expected density as a function of the parameters.
class ShotModel {
 public:
  explicit ShotModel(int spikes) : spikes_(spikes) {}
  int parameters() const { return shared_parameters + own_parameters * spikes_; }
  bool can_be(const Eigen::VectorXd& p) const {
    for (int spike = 0; spike < spikes_; ++spike)
      if (p[shared_parameters + own_parameters * spike + amplitude] > largest_log_amplitude) return false;
    return p.allFinite();
  }

  // `jacobian` may be null, else [pixels, parameters()], zeroed.
  void evaluate(const Eigen::VectorXd& p, std::vector<double>& density, Eigen::MatrixXd* jacobian) const {
    density.assign(pixels, std::exp(p[background]) + smallest_density);
    if (jacobian) jacobian->col(background).setConstant(std::exp(p[background]));
    for (int row = 0; row < cookiebox_angles; ++row)
      for (int spike = 0; spike < spikes_; ++spike)
        add_row(p.data(), row, spike, density, jacobian ? jacobian->data() : nullptr);
  }

 private:
  // The pulse of one spike in one row, and what the parameters do to it.
  void add_row(const double* p, int row, int spike, std::vector<double>& density, double* jacobian) const {
    const double* own = p + shared_parameters + own_parameters * spike;
    const double push = kick_bounds.value(p[kick]), wide = width_bounds.value(p[width]);
    const double share = polarization_bounds.value(p[polarization]);
    const double a = angle_of(row), turn = 2 * a + p[direction], height = std::exp(own[amplitude]);
    const double weight = height * (1 + share * std::cos(turn)) / 2;
    const double middle = own[centre] + push * std::cos(a + own[phase]);
    const int first = std::clamp(static_cast<int>(std::floor(middle - wide)), 0, cookiebox_bins);
    const int last = std::clamp(static_cast<int>(std::ceil(middle + wide)), 0, cookiebox_bins);
    for (int bin = first; bin < last; ++bin) {
      const double left = bin - middle, right = left + 1;
      const double area = pulse_integral(right, wide) - pulse_integral(left, wide);
      const std::size_t at = static_cast<std::size_t>(row) * cookiebox_bins + static_cast<std::size_t>(bin);
      density[at] += weight * area;
      if (!jacobian) continue;
      const auto slope = [&](int parameter) -> double& {
        return jacobian[static_cast<std::size_t>(parameter) * pixels + at];
      };
      const double shift = weight * (pulse(left, wide) - pulse(right, wide));  // d/d middle
      const int base = shared_parameters + own_parameters * spike;
      slope(base + centre) += shift;
      slope(base + phase) -= shift * push * std::sin(a + own[phase]);
      slope(base + amplitude) += weight * area;
      slope(kick) += shift * std::cos(a + own[phase]) * slope_of(kick_bounds, p[kick]);
      slope(width) += weight * (pulse_widening(right, wide) - pulse_widening(left, wide)) *
                      slope_of(width_bounds, p[width]);
      slope(polarization) +=
          height * area * std::cos(turn) / 2 * slope_of(polarization_bounds, p[polarization]);
      slope(direction) -= height * area * share * std::sin(turn) / 2;
    }
  }
  static double slope_of(const Bounds& bounds, double parameter) {
    return (bounds.high - bounds.low) * 0.5 * std::cos(parameter);
  }

  int spikes_;
};

// Twice the difference of log likelihoods between an exact fit and this one.
double deviance(std::span<const std::uint8_t> counts, const std::vector<double>& density) {
  double sum = 0;
  for (std::size_t i = 0; i < pixels; ++i) {
    const double expected = data::electrons_a_density * density[i], n = counts[i];
    sum += 2 * (expected - n);
    if (n > 0) sum += 2 * n * std::log(n / expected);
  }
  return sum;
}

// Fisher's scoring, damped as Levenberg and Marquardt do it: the curvature of the likelihood is taken as the
// expected one, which is never negative. Returns the deviance reached.
double maximise_likelihood(const ShotModel& model, std::span<const std::uint8_t> counts, Eigen::VectorXd& p) {
  constexpr int most_iterations = 80;
  constexpr double smallest_gain = 0.01;
  Eigen::MatrixXd jacobian(static_cast<Eigen::Index>(pixels), model.parameters());
  std::vector<double> density;
  double damping = 1e-2, reached = std::numeric_limits<double>::infinity();
  Eigen::MatrixXd curvature;
  Eigen::VectorXd slope;
  bool moved = true;
  for (int k = 0; k < most_iterations && damping < 1e8; ++k) {
    if (moved) {
      jacobian.setZero();
      model.evaluate(p, density, &jacobian);
      reached = deviance(counts, density);
      Eigen::VectorXd pull(static_cast<Eigen::Index>(pixels));
      for (std::size_t i = 0; i < pixels; ++i) {
        const auto row = static_cast<Eigen::Index>(i);
        const double root = std::sqrt(data::electrons_a_density / density[i]);
        pull[row] =
            (counts[i] / (data::electrons_a_density * density[i]) - 1) * data::electrons_a_density / root;
        jacobian.row(row) *= root;
      }
      curvature.noalias() = jacobian.transpose() * jacobian;
      slope.noalias() = jacobian.transpose() * pull;
    }
    Eigen::MatrixXd damped = curvature;
    damped.diagonal().array() += damping * curvature.diagonal().array() + 1e-9;
    const Eigen::VectorXd trial = p + damped.ldlt().solve(slope);
    double there = std::numeric_limits<double>::infinity();
    if (model.can_be(trial)) {
      model.evaluate(trial, density, nullptr);
      there = deviance(counts, density);
    }
    moved = there < reached;
    damping *= moved ? 0.2 : 5;
    if (!moved) continue;
    p = trial;
    if (reached - there < smallest_gain) return there;
  }
  return reached;
}

ShotFit shot_of(const Eigen::VectorXd& x, int spikes) {
  ShotFit fit;
  fit.shot.kick = kick_bounds.value(x[kick]);
  fit.shot.width = width_bounds.value(x[width]);
  fit.shot.polarization = polarization_bounds.value(x[polarization]);
  fit.shot.direction = x[direction];
  fit.background = std::exp(x[background]);
  for (int k = 0; k < spikes; ++k) {
    const auto own = x.segment<own_parameters>(shared_parameters + own_parameters * k);
    fit.shot.spikes.push_back({own[centre], std::remainder(own[phase], 2 * pi), std::exp(own[amplitude])});
  }
  return fit;
}

// Where the electrons that are left over lie: (angle, energy, weight).
struct Leftover {
  double angle, energy, weight;
};
std::vector<Leftover> leftovers(std::span<const std::uint8_t> counts, const ShotFit& fit) {
  const data::CookieboxDensity density = density_of(fit);
  std::vector<Leftover> left;
  for (std::size_t i = 0; i < pixels; ++i) {
    if (counts[i] == 0) continue;
    const double expected = data::electrons_a_density * static_cast<double>(density[i]);
    const double background = data::electrons_a_density * fit.background;
    const double weight = counts[i] * background / std::max(expected, 1e-12);  // share that nothing explains
    if (weight > 0.05)
      left.push_back({angle_of(static_cast<int>(i / cookiebox_bins)),
                      static_cast<double>(i % cookiebox_bins) + 0.5, weight});
  }
  return left;
}

struct Candidate {
  double score = -1, kick = 0, centre = 0, phase = 0;
};

constexpr int phases = 32, reach = 2, margin = 24;  // of the search for ridges

// Electrons in five bins around each energy when every row is shifted back by kick cos(angle + phase): a
// spike of that kick and phase becomes a line. [phases, bins + 2 margin]
std::vector<std::vector<double>> shifted_sums(const std::vector<Leftover>& left, double push) {
  std::vector<std::vector<double>> sums;
  std::vector<double> line(cookiebox_bins + 2 * margin);
  for (int k = 0; k < phases; ++k) {
    const double phi = 2 * pi * k / phases;
    std::fill(line.begin(), line.end(), 0.0);
    for (const Leftover& each : left) {
      const auto at = static_cast<std::ptrdiff_t>(each.energy - push * std::cos(each.angle + phi)) + margin;
      if (at >= 0 && at < std::ssize(line)) line[static_cast<std::size_t>(at)] += each.weight;
    }
    std::vector<double>& sum = sums.emplace_back(line.size(), 0.0);
    for (std::size_t c = reach; c + reach < line.size(); ++c)
      for (std::size_t i = c - reach; i <= c + reach; ++i) sum[c] += line[i];
  }
  return sums;
}

// The strongest ridges for one kick, of those that are like each other only the strongest.
std::vector<Candidate> best_ridges(const std::vector<Leftover>& left, double push, std::size_t most) {
  auto sums = shifted_sums(left, push);
  std::vector<Candidate> found;
  while (found.size() < most) {
    Candidate best;
    int best_phase = 0;
    for (int k = 0; k < phases; ++k)
      for (std::size_t c = 0; c < sums[0].size(); ++c)
        if (const double score = sums[static_cast<std::size_t>(k)][c]; score > best.score) {
          best = {score, push, static_cast<double>(c) - margin + 0.5, 2 * pi * k / phases};
          best_phase = k;
        }
    found.push_back(best);
    for (int dk = -3; dk <= 3; ++dk) {
      auto& line = sums[static_cast<std::size_t>((best_phase + dk + phases) % phases)];
      for (std::size_t c = 0; c < line.size(); ++c)
        if (std::abs(static_cast<double>(c) - margin + 0.5 - best.centre) < 6) line[c] = -1;
    }
  }
  return found;
}

// Kicks with which the electrons gather on lines, best first: the sum over energies of the squared count at
// the best phase, at its local maxima.
std::vector<double> likely_kicks(const std::vector<Leftover>& left, std::size_t most) {
  constexpr double step = 0.5;
  std::vector<std::pair<double, double>> focus;  // score, kick
  for (double push = 0; push <= 20; push += step) {
    const auto sums = shifted_sums(left, push);
    double score = 0;
    for (std::size_t c = 0; c < sums[0].size(); ++c) {
      double highest = 0;
      for (const auto& line : sums) highest = std::max(highest, line[c]);
      score += highest * highest;
    }
    focus.emplace_back(score, push);
  }
  std::ranges::sort(focus, std::greater{});
  std::vector<double> kicks;
  for (const auto& [score, push] : focus) {
    const auto near = [&](double other) { return std::abs(other - push) < 2; };
    if (kicks.size() < most && std::ranges::none_of(kicks, near)) kicks.push_back(push);
  }
  return kicks;
}

Eigen::VectorXd with_spike(const Eigen::VectorXd& x, const Candidate& spike) {
  Eigen::VectorXd more(x.size() + own_parameters);
  // As many electrons as were counted in the five bins, spread over all rows and the pulse's width.
  const double electrons = data::electrons_a_density * cookiebox_angles * width_bounds.value(x[width]) / 2;
  more << x, spike.centre, spike.phase, std::log(std::max(0.05, spike.score / electrons));
  return more;
}

class ShotSearch {
 public:
  ShotSearch(std::span<const std::uint8_t> counts, const ShotFitSettings& settings)
      : counts_(counts), settings_(settings) {}

  // A fit that begins without spikes, with this kick.
  ShotFit begin(double push) {
    double electrons = 0;
    for (const std::uint8_t count : counts_) electrons += count;
    x_.resize(shared_parameters);
    x_ << kick_bounds.parameter(push), width_bounds.parameter(3.5), polarization_bounds.parameter(0.3), 0,
        std::log(std::max(electrons / data::electrons_a_density / pixels, smallest_density));
    ShotFit fit = shot_of(x_, 0);
    std::vector<double> density;
    ShotModel(0).evaluate(x_, density, nullptr);
    fit.deviance = deviance(counts_, density);
    return fit;
  }
  // Adds spikes as long as they gain.
  ShotFit grow(ShotFit fit) {
    while (static_cast<int>(fit.shot.spikes.size()) < settings_.most_spikes && add_spike(fit)) {
    }
    return fit;
  }

 private:
  bool add_spike(ShotFit& fit) {
    constexpr std::size_t candidates = 3;
    const int spikes = static_cast<int>(fit.shot.spikes.size()) + 1;
    const ShotModel model(spikes);
    for (const Candidate& each : best_ridges(leftovers(counts_, fit), fit.shot.kick, candidates)) {
      Eigen::VectorXd trial = with_spike(x_, each);
      const double reached = maximise_likelihood(model, counts_, trial);
      if (fit.deviance - reached < settings_.least_gain) continue;
      x_ = trial;
      fit = shot_of(x_, spikes);
      fit.deviance = reached;
      return true;
    }
    return false;
  }

  std::span<const std::uint8_t> counts_;
  ShotFitSettings settings_;
  Eigen::VectorXd x_;
};

}  // namespace

data::CookieboxDensity density_of(const ShotFit& fit) {
  data::CookieboxDensity density = data::density_of(fit.shot);
  const auto change = static_cast<float>(fit.background - fit.shot.background());
  for (float& value : density) value += change;
  return density;
}

ShotFit fit_shot(std::span<const std::uint8_t> counts, const ShotFitSettings& settings) {
  ShotSearch search(counts, settings);
  ShotFit best = search.begin(10);
  for (const double push : likely_kicks(leftovers(counts, best), settings.starts)) {
    const ShotFit found = search.grow(search.begin(push));
    if (found.deviance < best.deviance) best = found;
  }
  return best;
}

}  // namespace superstep::baseline
