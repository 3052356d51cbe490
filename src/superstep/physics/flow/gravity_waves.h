// The drag of gravity waves on the wind of a column of air, by a spectrum of waves that rise, saturate and
// are absorbed: R. Lindzen, J. Geophys. Res. 86, 9707 (1981), each wave by itself in the WKB approximation.
//
// Heights are those of log pressure, z = -H ln(p / p0): the mass of a layer follows from its height alone.
#pragma once

#include <span>
#include <vector>

namespace superstep::data {

// The grid: `levels` layers of equal depth from the ground up to `top`, interfaces between them.
struct WaveGrid {
  int levels = 63;
  double top = 63e3;     // m
  double launch = 10e3;  // m; waves start at the interface nearest to it
  double depth() const { return top / levels; }
  int launch_interface() const;
};

inline constexpr double wave_scale_height = 7e3;        // m: H, of an atmosphere of 239 K
inline constexpr double wave_surface_pressure = 100e3;  // Pa: p0
inline constexpr double wave_gravity = 9.80665;         // m/s^2
// kg/m^3, at a height z in m: p / (g H).
double wave_density(double z);
// kg/m^2 of air between two heights.
double wave_mass(double low, double high);

// Waves in `azimuths` directions, evenly around the compass from eastwards on, each of `speeds` phase speeds.
struct WaveSpectrum {
  int azimuths = 8, speeds = 24;
  double wavelength = 300e3;  // m, horizontal
  // The share of time and place in which there are waves, over all of the spectrum: while they are there,
  // they carry as much more and break as much lower.
  double efficiency = 0.2;
};

struct WaveSource {
  double flux = 0;  // Pa, of all directions together at the launch
  double width =
      0;  // m/s: a phase speed c relative to the wind of the launch carries c exp(-c^2 / 2 width^2)
};

// Of layers, from the ground up.
struct WaveProfile {
  std::span<const double> u, v;         // m/s, eastwards and northwards
  std::span<const double> temperature;  // K
};

struct WaveDrag {
  std::vector<double> u, v;            // m/s^2, of layers
  std::vector<double> flux_u, flux_v;  // Pa, upwards through the interfaces: levels + 1
};

// The flux of a wave is what it was below, but not more than saturation allows,
//     rho k (c - U)^3 / (2 N) times its share of the efficiency,
// which is nothing where the wind is as fast as the wave. What it loses the layer gains; what comes to the
// lid leaves through it. Throws Error (invalid_argument) where lengths differ, the launch is not below the
// lid or the source is not positive.
WaveDrag wave_drag(const WaveGrid& grid, const WaveSpectrum& spectrum, const WaveSource& source,
                   const WaveProfile& profile);

// Squared buoyancy frequency at the interfaces, 1/s^2: (R / H) (dT/dz + kappa T / H), but at least 1e-5.
std::vector<double> wave_buoyancy(const WaveGrid& grid, std::span<const double> temperature);

}  // namespace superstep::data
