// The forward model of ptychography: exit wave, far field, detector.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/physics/xray/ptycho_scan.h"

namespace superstep::data {

// psi(r) = P(r) O(r + R): the n x n probe times the window at `at` of an object with rows of
// `object_width` pixels. The window must lie inside the object.
template <class T>
void exit_wave(std::span<const std::complex<T>> probe, int n, std::span<const std::complex<T>> object,
               int object_width, Position at, std::span<std::complex<T>> wave);

// I = |FFT2 psi|^2 / n^2 with frequency zero moved to pixel (n/2, n/2), so that sum I = sum |psi|^2
// (Parseval). Overwrites `wave` with its transform. n must be even.
template <class T>
void far_field_intensity(std::span<std::complex<T>> wave, int n, std::span<T> intensity);

// A counting detector: Poisson counts, pixels that never count, and a threshold below which a count is
// written as 0.
struct Detector {
  std::vector<std::uint8_t> dead;  // n x n, 1 where a pixel is dead; empty for none
  double threshold = 3;            // counts
};
Detector make_detector(RandomStream& random, int n, double dead_fraction, double threshold);
void count_photons(RandomStream& random, std::span<const float> intensity, const Detector& detector,
                   std::span<float> counts);

}  // namespace superstep::data
