// Iterative phase retrieval from one diffraction magnitude: error reduction (ER) and hybrid input-output
// (HIO) with a support that is found along the way (shrink-wrap).
//
// J. Fienup, Applied Optics 21, 2758 (1982); S. Marchesini et al., Phys. Rev. B 68, 140101 (2003).
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/base/shape.h"

namespace superstep::baseline {

using Field = std::vector<std::complex<float>>;

struct RetrievalSettings {
  int iterations = 300;
  int er_first = 20;  // ER iterations at the start, then cycles of HIO and ER, then er_last more of ER
  int cycle_hio = 45, cycle_er = 5;
  int er_last = 30;
  double beta = 0.9;        // HIO feedback
  int shrink_every = 20;    // iterations between updates of the support
  double sigma_first = 3;   // voxels, of the blur before thresholding; falls by a tenth an update ...
  double sigma_last = 0.8;  // ... down to this
  double threshold = 0.2;   // of the blurred maximum
};

struct Retrieval {
  Field object;                       // inside the support, 0 outside
  std::vector<std::uint8_t> support;  // 1 inside
  double chi2 = 0;                    // sum (|F object| - magnitude)^2 / sum magnitude^2
};

// Retrieves the object whose transform has `magnitude` (frequency zero first, row-major `shape`, extents
// at least twice the object's). Starts from random numbers within the middle half of every axis. Uses one
// thread. Throws Error (invalid_argument) when sizes disagree or the magnitude is zero everywhere.
Retrieval retrieve_phase(std::span<const float> magnitude, const Shape& shape,
                         const RetrievalSettings& settings, RandomStream& random);

// Is iteration `index` one of HIO?
bool is_hio(const RetrievalSettings& settings, int index);

// Where the blurred modulus of `object` is at least `threshold` of its largest value.
std::vector<std::uint8_t> shrink_wrapped(std::span<const std::complex<float>> object, const Shape& shape,
                                         double sigma, double threshold);

// sum (|F object| - magnitude)^2 / sum magnitude^2.
double diffraction_chi2(std::span<const std::complex<float>> object, const Shape& shape,
                        std::span<const float> magnitude);

}  // namespace superstep::baseline
