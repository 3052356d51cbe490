// The physics of a diffraction spot on an area detector: a rotated elliptical pseudo-Voigt peak on a flat
// background, seen through a detector that counts photons.
//
// Coordinates are in pixels; (0, 0) is the centre of the first pixel, columns run along x, rows along y.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::data {

// I(x, y) = amplitude [eta / (1 + q / (2 ln 2)) + (1 - eta) exp(-q / 2)], where q = (u/sigma1)^2 +
// (v/sigma2)^2 and (u, v) is (x - column, y - row) turned by `angle`. Both parts have the same half width:
// they are 1/2 of their height at q = 2 ln 2.
struct BraggPeak {
  double amplitude = 0;           // counts at the centre
  double sigma1 = 1, sigma2 = 1;  // px
  double angle = 0;               // rad
  double eta = 0;                 // share of the Lorentzian
  double background = 0;          // counts a pixel
  double column = 0, row = 0;     // px
};

// What peaks are drawn from. Amplitudes are log-uniform, all else is uniform.
struct BraggRanges {
  double amplitude_low = 100, amplitude_high = 5000;  // counts
  double sigma_low = 0.8, sigma_high = 2.0;           // px, of sigma1
  double ratio_low = 0.7, ratio_high = 1.4;           // sigma2 / sigma1
  double background_low = 0.5, background_high = 5;   // counts a pixel
};

// What the detector does to the expected counts, besides Poisson noise. All off by default.
struct BraggDetector {
  bool integrate = false;   // integrate over the pixel by 3x3 Gauss points rather than take its centre
  double point_spread = 0;  // px, standard deviation of a Gaussian blur
  double read_noise = 0;    // counts, standard deviation
  double saturation = 0;    // counts; 0: none
  double threshold = 0;     // counts below are set to zero
};

// Streams of random numbers of one sample, so that switching an effect on changes no other draw.
enum class BraggPurpose : std::uint32_t { peak, counts, neighbor, read_noise, position };
RandomStream bragg_stream(std::uint64_t seed, std::uint64_t index, BraggPurpose purpose);

// Everything but the position.
BraggPeak draw_bragg_peak(const BraggRanges& ranges, RandomStream& random);

double bragg_intensity(const BraggPeak& peak, double column, double row);  // without background

// Expected counts, row-major; column and row 0 of the image lie at (first_column, first_row).
class BraggImage {
 public:
  BraggImage(int first_column, int first_row, int width, int height);

  void fill(double value);
  // Adds the peak (without its background) wherever it is above `floor` counts.
  void add(const BraggPeak& peak, bool integrate, double floor = 0);
  // Blurs by a Gaussian; what lies outside the image counts as the nearest pixel inside.
  void blur(double sigma);
  double at(int column, int row) const {  // in the coordinates of the peaks
    return values_[static_cast<std::size_t>((row - first_row_) * width_ + column - first_column_)];
  }

 private:
  int first_column_, first_row_, width_, height_;
  std::vector<double> values_;
};

// One pixel's reading: Poisson counts of `expected`, read noise, saturation, threshold.
double detect(double expected, const BraggDetector& detector, RandomStream& counts, RandomStream& noise);

}  // namespace superstep::data
