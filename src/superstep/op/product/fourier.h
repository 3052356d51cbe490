// Complex numbers as pairs of real tensors, and their Fourier transforms along several axes: what diffraction
// is made of. (spectral.h has ONNX's DFT, one axis at a time, of parts that lie side by side.)
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// Real and imaginary part, of one shape; `im` invalid: zero.
struct Complex {
  Var re, im;
};

// superstep.Fourier: scale * sum over x of z[x] e^(-2 pi i k x / n) along each of the axes, e^(+...) when
// `inverse`. Nothing is divided by n: scale 1/sqrt(n) makes the transform unitary, 1/n the inverse one the
// inverse. Adjoint: the other direction with the same scale.
Complex fourier(Complex z, const std::vector<std::int64_t>& axes, bool inverse = false, double scale = 1);

Complex product(Complex a, Complex b);
Complex conjugate(Complex z);
Complex polar(Var amplitude, Var phase);  // amplitude e^(i phase)

// |z|, at least `least`; its slope is zero where |z| is below.
Var magnitude(Complex z, double least = 1e-12);
// In (-pi, pi]; 0, with slope 0, where |z| is below `least`.
Var angle(Complex z, double least = 1e-12);

std::span<const Definition> fourier_operators();  // superstep.Fourier

}  // namespace superstep::op
