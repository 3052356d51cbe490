// Stationary Gaussian random fields and the Gaussian blur that makes them.
#pragma once

#include <span>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::data {

enum class Border { periodic, clamp };

// Taps of a normal density of standard deviation `sigma_px`, cut at 3.5 sigma, odd in number, summing to 1.
// A sigma of 0 gives the single tap 1.
std::vector<float> gaussian_kernel(double sigma_px);

// Convolve a row-major height x width image with `kernel`, in place: along x, along y, along both.
void blur_rows(std::span<float> image, int width, int height, std::span<const float> kernel, Border border);
void blur_columns(std::span<float> image, int width, int height, std::span<const float> kernel,
                  Border border);
void blur(std::span<float> image, int width, int height, std::span<const float> kernel, Border border);

// White noise blurred with a Gaussian of `sigma_px`, periodic, mean 0 and variance 1 (over the ensemble); a
// width or height of 1 makes it one-dimensional.
// Its autocorrelation is exp(-r^2 / (4 sigma^2)): the 1/e correlation length is 2 sigma.
std::vector<float> gaussian_field(RandomStream& random, int width, int height, double sigma_px);

}  // namespace superstep::data
