// Fourier ring correlation: up to which spatial frequency two pictures of one object agree.
//
// W. Saxton and W. Baumeister, J. Microscopy 127, 127 (1982); thresholds: M. van Heel and M. Schatz, J.
// Struct. Biology 151, 250 (2005).
#pragma once

#include <complex>
#include <optional>
#include <span>
#include <vector>

namespace superstep::baseline {

// Rings one frequency step wide, 1 / n cycles a pixel; ring k holds the frequencies of length k - 1/2 up to
// k + 1/2 steps. From the mean (ring 0) to the Nyquist frequency (ring n / 2).
struct RingCorrelation {
  int n = 0;  // pixels along a side
  std::vector<double>
      correlation;            // Re sum a conj(b) / sqrt(sum |a|^2 sum |b|^2), in [-1, 1]; 0 of an empty ring
  std::vector<double> count;  // frequencies in each ring

  double frequency(std::size_t ring) const { return static_cast<double>(ring) / n; }  // cycles a pixel
};

// Of two square pictures [n, n] that are real or complex. Where they do not end alike on opposite sides they
// should have been tapered. Throws Error (invalid_argument) when sizes disagree, n is below 4, or a value is
// not finite.
RingCorrelation fourier_ring_correlation(std::span<const std::complex<float>> a,
                                         std::span<const std::complex<float>> b, int n);

// What noise with half a bit of information a frequency reaches in a ring of `count` frequencies, of which
// symmetry leaves half: the usual bound of two noisy pictures.
double half_bit(double count);

// Where two pictures agree no more: the frequency, in cycles a pixel, at which the correlation first falls
// below the bound, between two rings by a straight line. Nothing where it never does. `bound` is of a ring's
// count: half_bit, or a fixed one such as 0.5 beside a picture without noise.
template <class Bound>
std::optional<double> cut_off(const RingCorrelation& rings, Bound bound) {
  for (std::size_t ring = 1; ring < rings.correlation.size(); ++ring) {
    const double above = rings.correlation[ring] - bound(rings.count[ring]);
    if (above >= 0) continue;
    if (ring == 1) return rings.frequency(1);
    const double before = rings.correlation[ring - 1] - bound(rings.count[ring - 1]);
    return rings.frequency(ring - 1) + before / (before - above) / rings.n;
  }
  return std::nullopt;
}

// The largest square wholly within an area [height, width] of values above 0; side 0 of an empty one. Of
// several the first from the top, then from the left.
struct Square {
  int top = 0, left = 0, side = 0;
};
Square largest_square(std::span<const float> area, int height, int width);

// e^(i phase) in the square, less its mean, that falls to zero over an eighth of the side at each edge by a
// cosine: phases of any turns, ready for their rings. `object` is [., width].
std::vector<std::complex<float>> tapered_phase(std::span<const std::complex<float>> object, int width,
                                               const Square& square);

}  // namespace superstep::baseline
