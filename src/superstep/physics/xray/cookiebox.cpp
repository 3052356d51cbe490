#include "superstep/physics/xray/cookiebox.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace superstep::data {
namespace {

constexpr double pi = std::numbers::pi;
constexpr std::size_t row_bins = cookiebox_bins;

double angle_of(int row) { return 2 * pi * row / cookiebox_angles; }

// Integral of cos^2(pi x / (2 w)) from the left end of the pulse, -w, to x.
double pulse_integral(double x, double width) {
  const double inside = std::clamp(x, -width, width);
  return (inside + width) / 2 + width / (2 * pi) * std::sin(pi * inside / width);
}

void add_pulse(float* row, double centre, double width, double weight) {
  const int first = std::clamp(static_cast<int>(std::floor(centre - width)), 0, cookiebox_bins);
  const int last = std::clamp(static_cast<int>(std::ceil(centre + width)), 0, cookiebox_bins);
  double before = pulse_integral(first - centre, width);
  for (int bin = first; bin < last; ++bin) {
    const double after = pulse_integral(bin + 1 - centre, width);
    row[bin] += static_cast<float>(weight * (after - before));
    before = after;
  }
}

}  // namespace

double Shot::background() const {
  double sum = 0;
  for (const Spike& spike : spikes) sum += spike.amplitude;
  return 0.0005 + (spikes.empty() ? 0.0 : 0.002 * sum / static_cast<double>(spikes.size()));
}

Shot draw_shot(RandomStream& random) {
  Shot shot;
  shot.kick = random.uniform(0, 20);
  shot.width = random.uniform(2, 5);
  shot.polarization = random.uniform();
  shot.direction = random.uniform(0, 2 * pi);
  const double spread = random.uniform(4, 8);
  shot.spikes.resize(random.poisson(3));
  for (Spike& spike : shot.spikes) {
    spike.centre = 64 + spread * random.normal();
    spike.phase = random.uniform(0, 2 * pi);
    spike.amplitude = static_cast<double>(random.poisson(10)) / 10;
  }
  return shot;
}

CookieboxDensity density_of(const Shot& shot) {
  CookieboxDensity density(cookiebox_angles * row_bins, static_cast<float>(shot.background()));
  for (int row = 0; row < cookiebox_angles; ++row) {
    const double angle = angle_of(row);
    const double weight = (1 + shot.polarization * std::cos(2 * angle + shot.direction)) / 2;
    for (const Spike& spike : shot.spikes)
      add_pulse(density.data() + static_cast<std::size_t>(row) * row_bins,
                spike.centre + shot.kick * std::cos(angle + spike.phase), shot.width,
                spike.amplitude * weight);
  }
  return density;
}

std::vector<std::uint8_t> draw_histogram(RandomStream& random, const CookieboxDensity& density) {
  std::vector<std::uint8_t> counts(density.size(), 0);
  std::array<double, row_bins> cumulative;
  for (std::size_t row = 0; row < cookiebox_angles; ++row) {
    double sum = 0;
    for (std::size_t bin = 0; bin < row_bins; ++bin)
      cumulative[bin] = sum += static_cast<double>(density[row * row_bins + bin]);
    for (std::uint64_t hits = random.poisson(electrons_a_density * sum); hits > 0; --hits) {
      const auto at = std::upper_bound(cumulative.begin(), cumulative.end() - 1, random.uniform(0, sum));
      std::uint8_t& count = counts[row * row_bins + static_cast<std::size_t>(at - cumulative.begin())];
      if (count < 255) ++count;  // five or so electrons in a bin are already many
    }
  }
  return counts;
}

}  // namespace superstep::data
