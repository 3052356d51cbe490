// How alike two grey pictures are to the eye.
#pragma once

#include <span>

namespace superstep::baseline {

// Multi-scale structural similarity (Z. Wang, E. Simoncelli, A. Bovik, Asilomar 2003) of pictures in [0, 1],
// row-major: 1 for equal ones. Statistics are taken in a Gaussian window of 11 pixels, sigma 1.5, inside the
// picture; of the five published scales those are used on which the window fits, their weights made to sum to
// one (28 pixels a side: two scales). Below 11 pixels a side the window is as large as the picture.
double ms_ssim(std::span<const float> a, std::span<const float> b, int width, int height);

}  // namespace superstep::baseline
