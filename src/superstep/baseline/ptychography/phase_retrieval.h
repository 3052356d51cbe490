// Iterative phase retrieval from one diffraction magnitude: error reduction (ER) and hybrid input-output
// (HIO) with a support that is found along the way (shrink-wrap).
//
// J. Fienup, Applied Optics 21, 2758 (1982); S. Marchesini et al., Phys. Rev. B 68, 140101 (2003).
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "superstep/base/function_ref.h"
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

// The same from an answer at hand in place of random numbers: `start` has `shape`, is scaled to the
// magnitude, and its shrink-wrap at the first blur is the first support. Throws Error (invalid_argument) for
// a start of another size, that is not finite, or zero everywhere too.
//
// `note` is called with every object that lies inside its support and its chi2: the first, those after a step
// of ER, and the last; `iterations` is how many came before.
using NoteObject = FunctionRef<void(int iterations, double chi2, const Field& object)>;
Retrieval retrieve_phase(std::span<const float> magnitude, const Shape& shape,
                         const RetrievalSettings& settings, Field start, NoteObject note);
Retrieval retrieve_phase(std::span<const float> magnitude, const Shape& shape,
                         const RetrievalSettings& settings, RandomStream& random, NoteObject note);

// Multiplies the object by what brings its far field nearest to the magnitude: then its chi2 is the least.
void scale_to(Field& object, const Shape& shape, std::span<const float> magnitude);

// How much of an object's autocorrelation lies half the grid away from its middle along an axis, relative to
// the middle: the mean of the three planes. An object within half the grid has none there but that of the
// noise, about 1 / sqrt(counts); a larger one meets itself, and no support can tell it.
double share_beyond_half(std::span<const float> magnitude, const Shape& shape);

// Is iteration `index` one of HIO?
bool is_hio(const RetrievalSettings& settings, int index);

// Where the blurred modulus of `object` is at least `threshold` of its largest value.
std::vector<std::uint8_t> shrink_wrapped(std::span<const std::complex<float>> object, const Shape& shape,
                                         double sigma, double threshold);

// sum (|F object| - magnitude)^2 / sum magnitude^2.
double diffraction_chi2(std::span<const std::complex<float>> object, const Shape& shape,
                        std::span<const float> magnitude);

}  // namespace superstep::baseline
