// Discrete Fourier transforms. A complex number is two elements of the last axis, real and imaginary part; a
// last axis of one element is real.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// Along `axis` (not the last): X[k] = sum over t of x[t] e^(-2 pi i k t / n); the inverse has e^(+...) / n.
// `length` n cuts the axis or fills it with zeros (0: as it is). `onesided`: X[0 .. n/2] alone; an inverse of
// these has n = 2 (bins - 1) real numbers unless `length` says otherwise.
Var dft(Var x, std::int64_t axis, bool inverse = false, bool onesided = false, std::int64_t length = 0);

// The transforms of frames of a signal [batch, samples, 1 or 2], `step` samples apart, times `window`
// [frame length]: [batch, frames, bins, 2].
Var stft(Var signal, std::int64_t step, Var window, bool onesided = true);

// What a DFT node does, as kernels want it.
struct DftGeometry {
  int axis;
  std::int64_t length;  // n
  std::int64_t given;   // elements of the axis that are there, at most n
  std::int64_t bins;    // elements of the result
  bool inverse;
  bool real;  // the inverse of a onesided transform: gives real numbers
};
// `length` and `axis`: the values of these inputs, null where they are left out.
DftGeometry dft_geometry(const Attributes& attributes, const Shape& x, const std::int64_t* length,
                         const std::int64_t* axis);

std::span<const Definition> spectral_operators();  // DFT STFT
std::span<const Definition> window_operators();    // HannWindow HammingWindow BlackmanWindow MelWeightMatrix

}  // namespace superstep::op
