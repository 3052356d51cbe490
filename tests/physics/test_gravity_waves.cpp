#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "superstep/physics/flow/gravity_wave_generator.h"
#include "superstep/physics/flow/gravity_waves.h"
#include "superstep/physics/flow/middle_atmosphere.h"
#include "tests/expect_error.h"
#include "tests/physics/workload_generators.h"

namespace superstep::data {
namespace {

const WaveSpectrum one_wave{.azimuths = 1, .speeds = 1};  // eastwards, at one and a half widths
constexpr double temperature_of_scale = wave_gravity * wave_scale_height / 287.05;  // K: H = R T / g

struct Air {
  std::vector<double> u, v, temperature;
  explicit Air(const WaveGrid& grid, double wind = 0)
      : u(static_cast<std::size_t>(grid.levels), wind),
        v(u.size()),
        temperature(u.size(), temperature_of_scale) {}
  WaveProfile profile() const { return {u, v, temperature}; }
};

double mass_of(const WaveGrid& grid, std::size_t layer) {
  const double low = static_cast<double>(layer) * grid.depth();
  return wave_mass(low, low + grid.depth());
}

// Momentum that the waves leave in all layers together, Pa.
double deposited(const WaveGrid& grid, const std::vector<double>& drag) {
  double sum = 0;
  for (std::size_t k = 0; k < drag.size(); ++k) sum += drag[k] * mass_of(grid, k);
  return sum;
}

TEST(GravityWaves, RiseUnchangedInUniformAirUntilTheySaturate) {
  const WaveGrid grid{.levels = 126};
  const Air air(grid, 7);
  const WaveSource source{.flux = 2e-3, .width = 20};
  const WaveSpectrum spectrum{.azimuths = 1, .speeds = 1, .efficiency = 1e-2};
  const WaveDrag drag = wave_drag(grid, spectrum, source, air.profile());
  // kappa g / H is N^2 where H = R T / g.
  const double buoyancy = std::sqrt(2.0 / 7 * wave_gravity / wave_scale_height);
  const double wavenumber = 2 * std::numbers::pi / spectrum.wavelength, relative = 1.5 * source.width;
  const double most =
      spectrum.efficiency * wave_density(0) * wavenumber * std::pow(relative, 3) / (2 * buoyancy);
  const double height = wave_scale_height * std::log(most / source.flux);
  ASSERT_GT(height, 25e3);
  ASSERT_LT(height, 55e3);
  for (std::size_t i = static_cast<std::size_t>(grid.launch_interface()); i < drag.flux_u.size(); ++i) {
    const double z = static_cast<double>(i) * grid.depth();
    const double expected = z < height ? source.flux : most * std::exp(-z / wave_scale_height);
    EXPECT_NEAR(drag.flux_u[i], expected, 1e-12 * source.flux) << z;
    EXPECT_EQ(drag.flux_v[i], 0);
  }
  // Beyond that height the wind is pushed by efficiency k (c - U)^3 / (2 N H) everywhere: Lindzen's result.
  const double pushed =
      spectrum.efficiency * wavenumber * std::pow(relative, 3) / (2 * buoyancy * wave_scale_height);
  for (std::size_t k = 0; k < drag.u.size(); ++k) {
    const double low = static_cast<double>(k) * grid.depth();
    if (low + grid.depth() < height) {
      EXPECT_EQ(drag.u[k], 0) << low;
    }
    if (low > height) {
      EXPECT_NEAR(drag.u[k], pushed, 1e-10 * pushed) << low;
    }
  }
}

TEST(GravityWaves, LeaveEverythingBelowTheirCriticalLevel) {
  const WaveGrid grid;
  Air air(grid);
  for (std::size_t k = 0; k < air.u.size(); ++k) air.u[k] = 1.2 * (static_cast<double>(k) - 9.5);
  const WaveSource source{.flux = 3e-3, .width = 20};  // c = 30 m/s beyond the wind of the launch, which is 0
  const WaveDrag drag = wave_drag(grid, one_wave, source, air.profile());
  const std::size_t critical = 10 + 25;  // interface where the wind is 30 m/s
  for (std::size_t i = 0; i < drag.flux_u.size(); ++i)
    if (i >= critical) {
      EXPECT_EQ(drag.flux_u[i], 0) << i;
    }
  EXPECT_GT(drag.flux_u[critical - 1], 0);
  EXPECT_NEAR(deposited(grid, drag.u), source.flux, 1e-15);
  for (std::size_t k = 0; k < drag.u.size(); ++k) {
    EXPECT_GE(drag.u[k], 0);  // towards the speed of the wave
    if (k >= critical) {
      EXPECT_EQ(drag.u[k], 0) << k;
    }
  }
  // The control: faster than any wind here, the wave comes through.
  const WaveDrag faster = wave_drag(grid, one_wave, {.flux = 3e-3, .width = 60}, air.profile());
  EXPECT_GT(faster.flux_u.back(), 0);
}

TEST(GravityWaves, PushStillAirNowhere) {
  const WaveGrid grid;
  const Air air(grid);
  const WaveDrag drag = wave_drag(grid, {}, {.flux = 5e-3, .width = 25}, air.profile());
  for (std::size_t k = 0; k < drag.u.size(); ++k) {
    EXPECT_NEAR(drag.u[k] * seconds_a_day, 0, 1e-9);
    EXPECT_NEAR(drag.v[k] * seconds_a_day, 0, 1e-9);
  }
}

AirColumn drawn(std::uint64_t index, const WaveGrid& grid) {
  RandomStream random(5, index);
  return draw_air_column(random, grid);
}

TEST(GravityWaves, LeaveInTheAirWhatTheirFluxLoses) {
  const WaveGrid grid;
  for (std::uint64_t index = 0; index < 20; ++index) {
    const AirColumn air = drawn(index, grid);
    const WaveDrag drag = wave_drag(grid, {}, {.flux = 4e-3, .width = 30}, {air.u, air.v, air.temperature});
    const auto launch = static_cast<std::size_t>(grid.launch_interface());
    EXPECT_NEAR(deposited(grid, drag.u), drag.flux_u[launch] - drag.flux_u.back(), 1e-16);
    EXPECT_NEAR(deposited(grid, drag.v), drag.flux_v[launch] - drag.flux_v.back(), 1e-16);
    EXPECT_GT(std::abs(deposited(grid, drag.u)), 1e-6);
  }
}

TEST(GravityWaves, TurnWithTheWind) {
  const WaveGrid grid;
  const AirColumn air = drawn(3, grid);
  const WaveSource source{.flux = 4e-3, .width = 30};
  const WaveDrag drag = wave_drag(grid, {}, source, {air.u, air.v, air.temperature});
  std::vector<double> mirrored = air.v;
  for (double& v : mirrored) v = -v;
  const WaveDrag mirror = wave_drag(grid, {}, source, {air.u, mirrored, air.temperature});
  const WaveDrag turned = wave_drag(grid, {}, source, {mirrored, air.u, air.temperature});  // by a quarter
  for (std::size_t k = 0; k < drag.u.size(); ++k) {
    EXPECT_NEAR(mirror.u[k], drag.u[k], 1e-12);
    EXPECT_NEAR(mirror.v[k], -drag.v[k], 1e-12);
    EXPECT_NEAR(turned.u[k], -drag.v[k], 1e-12);
    EXPECT_NEAR(turned.v[k], drag.u[k], 1e-12);
  }
}

// The flux at every kilometre in a wind that is known everywhere, with so many layers a kilometre.
std::vector<double> flux_of_known_wind(int fine) {
  const WaveGrid grid{.levels = 63 * fine};
  Air air(grid);
  for (std::size_t k = 0; k < air.u.size(); ++k) {
    const double z = (static_cast<double>(k) + 0.5) / fine;
    air.u[k] = 40 * std::sin(z / 9) + 0.3 * z;
    air.v[k] = 15 * std::cos(z / 7);
  }
  const WaveDrag drag = wave_drag(grid, {}, {.flux = 4e-3, .width = 30}, air.profile());
  std::vector<double> flux;
  for (std::size_t z = 10; z <= 63; ++z) flux.push_back(drag.flux_u[z * static_cast<std::size_t>(fine)]);
  return flux;
}

TEST(GravityWaves, SettleAsLayersGetThinner) {
  const std::vector<double> finest = flux_of_known_wind(16);
  std::vector<double> off;
  for (const int fine : {1, 2, 4, 8}) {
    const std::vector<double> flux = flux_of_known_wind(fine);
    double squares = 0;
    for (std::size_t i = 0; i < flux.size(); ++i) squares += std::pow(flux[i] - finest[i], 2);
    off.push_back(std::sqrt(squares / static_cast<double>(flux.size())));
  }
  for (std::size_t i = 1; i < off.size(); ++i) EXPECT_LT(off[i], 0.7 * off[i - 1]) << i;
  EXPECT_LT(off[0], 0.03 * 4e-3);
  EXPECT_GT(off[0], 0);
}

TEST(GravityWaves, RefuseWhatIsNoColumn) {
  const WaveGrid grid;
  const Air air(grid), short_air(WaveGrid{.levels = 20});
  const WaveSource source{.flux = 1e-3, .width = 20};
  expect_error(ErrorCode::invalid_argument, {"20, 20 and 20 layers", "the grid 63"},
               [&] { wave_drag(grid, {}, source, short_air.profile()); });
  expect_error(ErrorCode::invalid_argument, {"a width of 0 m/s"},
               [&] { wave_drag(grid, {}, {.flux = 1e-3, .width = 0}, air.profile()); });
  expect_error(ErrorCode::invalid_argument, {"the launch at 7e+04 m is not between ground and lid"},
               [&] { wave_drag({.levels = 63, .launch = 70e3}, {}, source, air.profile()); });
}

TEST(GravityWaveGenerator, SameBitsOnAnyNumberOfThreads) {
  expect_same_bits_on_any_threads("gravity-wave-drag", 12);
  expect_same_bits_on_any_threads("gravity-wave-drag", 5, {"levels=20", "azimuths=4", "speeds=6"});
}

TEST(GravityWaveGenerator, MakesColumnsThatAreAirAndTheirDrag) {
  ThreadPool pool(2);
  const auto generator = make_generator("gravity-wave-drag");
  const auto made = generate_in_memory(*generator, 2, 0, 300, pool);
  const Tensor &u = field(*generator, made, "u"), &temperature = field(*generator, made, "temperature"),
               &drag = field(*generator, made, "drag_u"), &source = field(*generator, made, "source");
  for (std::int64_t i = 0; i < u.element_count(); ++i) {
    EXPECT_LT(std::abs(u.at(i)), 250);
    EXPECT_GT(temperature.at(i), 140);
    EXPECT_LT(temperature.at(i), 340);
    EXPECT_LT(std::abs(drag.at(i)), 3000);
    if (i % 63 < 10) {
      EXPECT_EQ(drag.at(i), 0);  // below the launch
    }
  }
  // Of the numbers in the file, to the last bit but one of f32.
  const auto layers = [&](const char* name, std::int64_t index) {
    std::vector<double> values;
    for (std::int64_t k = 0; k < 63; ++k) values.push_back(field(*generator, made, name).at(63 * index + k));
    return values;
  };
  for (const std::int64_t index : {0, 7, 299}) {
    const auto own_u = layers("u", index), own_v = layers("v", index), own_t = layers("temperature", index);
    const WaveDrag again =
        wave_drag({}, {}, {.flux = 1e-3 * source.at(2 * index), .width = source.at(2 * index + 1)},
                  {own_u, own_v, own_t});
    for (std::int64_t k = 0; k < 63; ++k) {
      const double expected = again.u[static_cast<std::size_t>(k)] * seconds_a_day;
      EXPECT_NEAR(drag.at(63 * index + k), expected, 1e-6 * std::abs(expected) + 1e-12);
    }
  }
}

}  // namespace
}  // namespace superstep::data
