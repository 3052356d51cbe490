// How close a reconstructed object comes to the true one, once what no measurement can tell is removed.
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "superstep/baseline/ptychography/epie.h"

namespace superstep::baseline {

// When the probe is unknown, (O exp(i(c + k.r)), P exp(-i k.r)) gives the same patterns for every c and k,
// and so does (s O, P / s): the best c, k and s over the compared pixels are removed.
struct ObjectComparison {
  double phase_rms = 0;           // rad, of the phase of reconstructed * conj(true)
  double amplitude_rms = 0;       // of the scaled modulus, the true one being about 1
  double ramp_y = 0, ramp_x = 0;  // rad a pixel, removed
  double pixels = 0;              // compared
  std::vector<std::complex<float>> aligned;
};

// Pixels count where `weight` is above 0. All spans are height x width.
ObjectComparison compare_objects(std::span<const std::complex<float>> reconstructed,
                                 std::span<const std::complex<float>> truth, std::span<const float> weight,
                                 int height, int width);

// Where the scan put light: 1 where the dose sum_j |P(r - R_j)|^2 is at least half its mean over the scan
// points (at an edge of a scan of constant density it is half), else 0.
std::vector<float> scanned_area(const PtychoData& data, std::span<const std::complex<float>> probe);

}  // namespace superstep::baseline
