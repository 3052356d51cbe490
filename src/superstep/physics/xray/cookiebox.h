// Angular streaking at an X-ray free-electron laser: energy spectra of photoelectrons in a ring of 128
// spectrometers ("CookieBox"), as densities and as the few electrons that a shot gives.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::data {

inline constexpr int cookiebox_angles = 128, cookiebox_bins = 128;
inline constexpr double electrons_a_density = 5;  // expected electrons of a row / integral of its density

// One pulse of light: where its electrons lie, and where the streaking field pushes them.
struct Spike {
  double centre = 64;    // energy bin; bin i covers [i, i + 1)
  double phase = 0;      // rad
  double amplitude = 1;  // of its density
};

struct Shot {
  std::vector<Spike> spikes;
  double kick = 0;            // bins; the ridge of a spike is centre + kick cos(angle + phase)
  double width = 3;           // full width at half maximum of the cos^2 pulse, bins
  double polarization = 0;    // 0 to 1; a row is weighted with (1 + p cos(2 angle + direction)) / 2
  double direction = 0;       // rad
  double background() const;  // density of every bin: 0.0005 + 0.002 mean amplitude
};

// Poisson(3) spikes with centres N(64, 4 to 8 bins), amplitudes Poisson(10)/10; kick 0 to 20 bins, width 2
// to 5 bins.
Shot draw_shot(RandomStream& random);

using CookieboxDensity = std::vector<float>;  // [angle, bin]

// The density integrated over each bin.
CookieboxDensity density_of(const Shot& shot);

// Electrons of one shot: Poisson(5 x integral) in a row, at energies drawn from the row's density.
std::vector<std::uint8_t> draw_histogram(RandomStream& random, const CookieboxDensity& density);

}  // namespace superstep::data
