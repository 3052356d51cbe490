// Illuminations of a ptychography experiment, on an n x n grid of object pixels, centred at (n/2, n/2).
// All have unit intensity: sum |P|^2 = 1; scale by the square root of the number of photons.
#pragma once

#include <complex>
#include <span>
#include <vector>

namespace superstep::data {

using ComplexField = std::vector<std::complex<float>>;

// The focus of a Fresnel zone plate: the Fourier transform of a circular pupil with a central stop and a
// quadratic phase. The pupil is scaled so that the spot has the width asked for.
struct ZonePlate {
  double fwhm = 7.5;            // px; diameter of the disc of the same area as the set above half maximum
  double central_stop = 0.35;   // radius of the stop / radius of the pupil, in [0, 0.9]
  double defocus_waves = 0.25;  // optical path difference of pupil edge and centre, in wavelengths
};
ComplexField zone_plate_probe(int n, const ZonePlate& settings);

ComplexField gaussian_probe(int n, double fwhm);  // fwhm in px, of the intensity; flat phase

// Width of a spot as ZonePlate::fwhm defines it, in px.
double full_width_at_half_maximum(std::span<const std::complex<float>> probe);

double total_intensity(std::span<const std::complex<float>> field);  // sum |f|^2
void scale(std::span<std::complex<float>> field, double factor);

}  // namespace superstep::data
