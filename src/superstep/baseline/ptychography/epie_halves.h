// The resolution of a reconstruction without the truth: two objects, each from every second point of the
// scan, and up to which spatial frequency they agree (van Heel and Schatz, J. Struct. Biology 151, 250
// (2005): the half-bit curve, the bound of two noisy pictures).
#pragma once

#include <complex>
#include <optional>
#include <span>
#include <vector>

#include "superstep/baseline/ptychography/epie.h"

namespace superstep::baseline {

// The points first, first + 2, ... of a scan. Neighbours along a line come to different halves, so that both
// halves cover the object. Throws Error (invalid_argument) where that leaves none.
PtychoData every_second_point(const PtychoData& data, std::size_t first);

struct HalvesAgreement {
  double phase_rms = 0;   // rad, between the halves, less what no measurement can tell (epie_compare.h)
  double resolution = 0;  // pixels a period at which the rings fall below half a bit; 2 where they never do
  int side = 0;           // pixels of the square that the rings are taken in
};

// Two objects, height x width, where `area` is above 0. Nothing where no square of 8 pixels lies in it.
std::optional<HalvesAgreement> agreement_of(std::span<const std::complex<float>> a,
                                            std::span<const std::complex<float>> b,
                                            std::span<const float> area, int height, int width);

}  // namespace superstep::baseline
