// Discrete Fourier transforms of f32 along axes of a tensor, of any length.
//
//   y[k] = scale * sum over t of x[t] e^(-2 pi i k t / n)   (e^(+...) when inverse) along every one of the
//   axes
//
// Lines are transformed side by side, one a vector lane, by Stockham's mixed radices (2, 3, 4, 5, 7, 8, 11,
// 13; C. Van Loan, "Computational frameworks for the fast Fourier transform", 1992); lengths with larger
// prime factors by Bluestein's convolution (L. Bluestein, "A linear filtering approach to the computation of
// the discrete Fourier transform", 1970). A line's bits do not depend on the lines beside it.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// How real and imaginary parts lie.
enum class ComplexForm : std::uint8_t {
  real,         // imaginary parts are zero (x), or are not asked for (y)
  separate,     // tensors of their own, of the same strides: one slot each
  interleaved,  // side by side: strides are even, an imaginary part lies behind its real part
};

// Extents and strides are those of the tensors without the axis of real and imaginary part. Slots: inputs x
// (or its real, then its imaginary part); outputs y likewise. x and y are the same memory, with the same
// strides and form, or do not overlap.
struct Fourier {
  std::vector<std::int64_t> extents;  // of x, outermost first
  std::vector<std::int64_t> x_strides, y_strides;
  std::vector<int> axes;  // to transform; each once
  bool inverse = false;   // the sign of the exponent alone: nothing is divided by n
  float scale = 1;
  ComplexForm x_form = ComplexForm::separate, y_form = ComplexForm::separate;
  // With one axis alone: n, where it is not its extent in x (zeros follow, or elements are left out), and the
  // elements of y along it. 0: the extent in x, and n.
  std::int64_t length = 0, results = 0;
  // The axis of x holds the first n/2 + 1 terms of n whose other half are their conjugates.
  bool half = false;
};

Prepared prepare(const Fourier& fourier);

// Operations by the usual count, 5 n log2 n of a line.
double fourier_flops(const Fourier& fourier);

}  // namespace superstep::kernels
