// Removal of vertical stripes by wavelets and damping (B. Muench, P. Trtik, F. Marone, M. Stampanoni, Optics
// Express 17, 8567 (2009)).
#pragma once

#include <span>
#include <vector>

namespace superstep::baseline {

// The image is decomposed over `levels` levels of Daubechies' four-tap wavelets (fewer where its sides are
// not divisible by two that often). Stripes lie in the bands of vertical details at low frequencies along y;
// those are damped by 1 - exp(-k^2 / (2 damping^2)), k in periods over the height of the band. In space that
// is the band less its Gaussian blur along y, which is how it is done.
std::vector<float> remove_vertical_stripes(std::span<const float> image, int width, int height, int levels,
                                           double damping);

}  // namespace superstep::baseline
