// When Winograd's algorithm is faster than the direct sum, and with which tiles. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/winograd/winograd.h"

namespace superstep::kernels {

// Cycles of one core for a run with full vectors of 16 lanes (narrower ones change all counts alike, near
// enough), what reading weights from beyond the second-level cache costs included, and the packing of weights
// that change from step to step. The constants were measured on Zen 5, those of bf16 on Zen 4 as well; there
// the estimates lie within a fifth of the clock for most of the layers that bench_winograd prints.
double direct_cycles(const Convolution& convolution, ConvolutionPass pass);
double winograd_cycles(const Convolution& convolution, ConvolutionPass pass, const WinogradForm& form);

// Of the faster one of the two, as the choice below would fall.
double expected_cycles(const Convolution& convolution, ConvolutionPass pass);

// What rounding its products' factors to bf16 may leave in a result (winograd_bf16_noise): two units in the
// last place of bf16. Trained and served so, the models of the zoo reach what they reach with direct sums.
inline constexpr double winograd_noise_allowed = 0x1p-6;

// In the form that takes the least time, of those that are as exact as the images' type asks for; refuses
// where it would not be clearly faster than the direct sum.
template <ConvolutionPass pass>
Prepared prepare_winograd(const Convolution& convolution);

}  // namespace superstep::kernels
