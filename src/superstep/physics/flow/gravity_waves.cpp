#include "superstep/physics/flow/gravity_waves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

constexpr double gas_constant = 287.05;  // J/(kg K), of dry air
constexpr double kappa = 2.0 / 7;        // gas constant over heat capacity of an ideal gas of two atoms
constexpr double least_buoyancy = 1e-5;  // 1/s^2; chosen: a column that overturns has no waves to carry
constexpr double fastest_in_widths = 3;  // of the spectrum; chosen: 1.1 % of the flux would be faster
constexpr double two_pi = 2 * std::numbers::pi;

// Of layers at the interfaces above the ground: the mean of the two beside it; at the lid what the last has.
std::vector<double> at_interfaces(std::span<const double> layers) {
  const std::size_t count = layers.size();
  std::vector<double> values(count + 1);
  values.front() = layers.front();
  values.back() = layers.back();
  for (std::size_t i = 1; i < count; ++i) values[i] = (layers[i - 1] + layers[i]) / 2;
  return values;
}

void check(const WaveGrid& grid, const WaveSpectrum& spectrum, const WaveSource& source,
           const WaveProfile& profile) {
  const auto levels = static_cast<std::size_t>(grid.levels);
  if (grid.levels < 2 || profile.u.size() != levels || profile.v.size() != levels ||
      profile.temperature.size() != levels)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("has {}, {} and {} layers of u, v and temperature, the grid {}", profile.u.size(),
                            profile.v.size(), profile.temperature.size(), grid.levels),
                "gravity waves");
  if (grid.launch_interface() < 1 || grid.launch_interface() >= grid.levels)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the launch at {:.4g} m is not between ground and lid ({:.4g} m)", grid.launch, grid.top),
        "gravity waves");
  if (!(source.flux >= 0) || !(source.width > 0) || spectrum.azimuths < 1 || spectrum.speeds < 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a flux of {:.4g} Pa, a width of {:.4g} m/s, {} x {} waves", source.flux,
                            source.width, spectrum.azimuths, spectrum.speeds),
                "gravity waves", "the flux must not be negative, the others are above zero");
}

// Phase speeds relative to the wind at the launch, and what each carries of the flux of its direction.
struct Launched {
  std::vector<double> speed, share;
};

Launched launched(const WaveSpectrum& spectrum, double width) {
  Launched waves;
  double sum = 0;
  for (int j = 0; j < spectrum.speeds; ++j) {
    const double c = (j + 0.5) * fastest_in_widths * width / spectrum.speeds, w = c / width;
    waves.speed.push_back(c);
    waves.share.push_back(w * std::exp(-w * w / 2));
    sum += waves.share.back();
  }
  for (double& share : waves.share) share /= sum;
  return waves;
}

// In four parts, so that they can be summed side by side; the same order everywhere.
double sum_of(const std::vector<double>& values) {
  std::array<double, 4> parts{};
  for (std::size_t j = 0; j < values.size(); ++j) parts[j % 4] += values[j];
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// The waves of one direction from the launch upwards. `wind`: along it, at the interfaces; `saturated[i]`
// times the cube of a speed is the most that a wave carries through interface i. Fluxes go into `flux`.
void rise(const Launched& waves, double launched_flux, std::size_t first, std::span<const double> wind,
          std::span<const double> saturated, std::span<double> flux) {
  const std::size_t count = waves.speed.size();
  std::vector<double> carried(count), speed(count);
  for (std::size_t j = 0; j < count; ++j) {
    carried[j] = launched_flux * waves.share[j];
    speed[j] = wind[first] + waves.speed[j];
  }
  for (std::size_t i = first; i < flux.size(); ++i) {
    const double most = saturated[i], u = wind[i];
    for (std::size_t j = 0; j < count; ++j) {
      // Nothing passes where the wind has the wave's speed, and nothing comes back beyond.
      const double relative = std::max(speed[j] - u, 0.0);
      carried[j] = std::min(carried[j], most * relative * relative * relative);
    }
    flux[i] = sum_of(carried);
  }
}

}  // namespace

int WaveGrid::launch_interface() const { return static_cast<int>(std::lround(launch / depth())); }

double wave_density(double z) {
  return wave_surface_pressure / (wave_gravity * wave_scale_height) * std::exp(-z / wave_scale_height);
}

double wave_mass(double low, double high) {
  return wave_scale_height * (wave_density(low) - wave_density(high));
}

std::vector<double> wave_buoyancy(const WaveGrid& grid, std::span<const double> temperature) {
  std::vector<double> slope(temperature.size() + 1);
  for (std::size_t i = 1; i < temperature.size(); ++i)
    slope[i] = (temperature[i] - temperature[i - 1]) / grid.depth();
  slope.front() = slope[1], slope.back() = slope[temperature.size() - 1];
  std::vector<double> squared = at_interfaces(temperature);
  for (std::size_t i = 0; i < squared.size(); ++i)
    squared[i] = std::max(least_buoyancy, gas_constant / wave_scale_height *
                                              (slope[i] + kappa * squared[i] / wave_scale_height));
  return squared;
}

WaveDrag wave_drag(const WaveGrid& grid, const WaveSpectrum& spectrum, const WaveSource& source,
                   const WaveProfile& profile) {
  check(grid, spectrum, source, profile);
  const auto levels = static_cast<std::size_t>(grid.levels);
  const auto first = static_cast<std::size_t>(grid.launch_interface());
  const std::vector<double> u = at_interfaces(profile.u), v = at_interfaces(profile.v),
                            buoyancy = wave_buoyancy(grid, profile.temperature);
  const double wavenumber = two_pi / spectrum.wavelength;
  const double efficiency = spectrum.efficiency / (spectrum.azimuths * spectrum.speeds);
  std::vector<double> saturated(levels + 1), wind(levels + 1), flux(levels + 1);
  for (std::size_t i = 0; i <= levels; ++i)
    saturated[i] = efficiency * wave_density(static_cast<double>(i) * grid.depth()) * wavenumber /
                   (2 * std::sqrt(buoyancy[i]));
  const Launched waves = launched(spectrum, source.width);
  WaveDrag drag{std::vector<double>(levels), std::vector<double>(levels), std::vector<double>(levels + 1),
                std::vector<double>(levels + 1)};
  for (int azimuth = 0; azimuth < spectrum.azimuths; ++azimuth) {
    const double angle = two_pi * azimuth / spectrum.azimuths, c = std::cos(angle), s = std::sin(angle);
    for (std::size_t i = 0; i <= levels; ++i) wind[i] = c * u[i] + s * v[i];
    rise(waves, source.flux / spectrum.azimuths, first, wind, saturated, flux);
    for (std::size_t i = first; i <= levels; ++i)
      drag.flux_u[i] += c * flux[i], drag.flux_v[i] += s * flux[i];
  }
  for (std::size_t k = first; k < levels; ++k) {
    const double low = static_cast<double>(k) * grid.depth(), mass = wave_mass(low, low + grid.depth());
    drag.u[k] = (drag.flux_u[k] - drag.flux_u[k + 1]) / mass;
    drag.v[k] = (drag.flux_v[k] - drag.flux_v[k + 1]) / mass;
  }
  return drag;
}

}  // namespace superstep::data
